package client

import (
	"fmt"
	"net/http"
	"net/url"
)

// address is where a server is, and what opens it. It is never changed.
type address struct {
	url, token, socket string
	base               *url.URL
}

func addressOf(at, token, socket string) (*address, error) {
	base, err := url.Parse(at)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("the server's URL %q is not one: it is like http://127.0.0.1:7788", at)
	}
	return &address{url: at, token: token, socket: socket, base: base}, nil
}

// authorise shows the token.
func (a *address) authorise(req *http.Request) {
	if a.token != "" { // a server says some things to those who have none
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
}

// refind reads the record of a server that was found once more, and reports whether the server is
// elsewhere by now, or opened by another token. While none runs, nothing changes: the next one
// may be about to come.
func (c *Client) refind() bool {
	if c.record == "" {
		return false
	}
	r, there, err := ReadRecord(c.record)
	if err != nil || !there || !r.Runs() {
		return false
	}
	was := c.at.Load()
	if r.URL == was.url && r.Token == was.token && r.Socket == was.socket {
		return false
	}
	now, err := addressOf(r.URL, r.Token, r.Socket)
	return err == nil && c.at.CompareAndSwap(was, now)
}

// send makes a request; one that was refused for its token is made again when the server of now
// has another one: nothing was done before.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	again, err := c.elsewhere(req)
	if err != nil || again == nil {
		return resp, err
	}
	_ = resp.Body.Close() // its text is known
	return c.send(again)
}

// elsewhere is a request as the server of now gets it; nil: that is where it was made, or it
// cannot be made a second time.
func (c *Client) elsewhere(req *http.Request) (*http.Request, error) {
	c.refind()
	now := c.at.Load()
	again := req.Clone(req.Context())
	now.authorise(again)
	if again.Header.Get("Authorization") == req.Header.Get("Authorization") {
		return nil, nil
	}
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil { // what streams is gone
		return nil, nil
	}
	return c.anew(req)
}

// anew is a request as it is made once more, to the server of now. Of a body that streams
// nothing was read.
func (c *Client) anew(req *http.Request) (*http.Request, error) {
	now := c.at.Load()
	again := req.Clone(req.Context())
	now.authorise(again)
	again.URL.Scheme, again.URL.Host, again.Host = now.base.Scheme, now.base.Host, now.base.Host
	if req.GetBody == nil {
		return again, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("send the request again: %w", err)
	}
	again.Body = body
	return again, nil
}
