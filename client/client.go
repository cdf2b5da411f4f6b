package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// Options make a Client. The zero value of a field is its default.
type Options struct {
	// URL and Token are those of the server: http://127.0.0.1:7788. Required.
	URL   string
	Token string
	// Socket is the path of the server's Unix socket, which is used in place of the
	// address. "": the address.
	Socket string
	// Patience is how long the server may be out of reach, from the first try that
	// failed, before a request or a stream does, and how long it may leave a request
	// without an answer: at least 1 s, and for what takes its time while it answers others.
	// A server is in reach that gives a stream an event, or signs of life for as long.
	// 0: 30 s; negative: nothing is tried again, and answers are waited for as with 0.
	Patience time.Duration
	// Silence is after how long without a sign of life a stream is taken for
	// broken. 0: 45 s, or 15 more than Patience, if that is less; the server sends one every 15.
	Silence time.Duration
	// Transport carries the requests. nil: one of the client's own, which trusts the
	// authorities that the system does.
	Transport http.RoundTripper
}

// Client asks one server. Make it with New or Find.
type Client struct {
	o    Options
	at   atomic.Pointer[address]
	http *http.Client
	own  *http.Transport // nil when the transport is the caller's
	// record is the file in which the server was found, "" for one that was named.
	record string
	// answering is how long an answer is waited for that is there at once.
	answering time.Duration

	epochs   epochs
	sessions sessions
	asked    asked
	// lives is which life of a server has started a process: with that life it is gone.
	lives remembered[string]
}

// defaultPatience is that of who names none.
const defaultPatience = 30 * time.Second

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 256 << 20

// How long the client waits between two tries.
const (
	pauseFirst = 10 * time.Millisecond
	pauseMost  = time.Second
)

// New returns a client. It asks nothing of the server yet.
func New(o Options) (*Client, error) {
	at, err := addressOf(o.URL, o.Token, o.Socket)
	if err != nil {
		return nil, err
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	answering := answerLimit(o.Patience)
	if o.Silence <= 0 {
		o.Silence = min(longestSilence, signOfLife+answering)
	}
	c := &Client{o: o, answering: answering}
	c.at.Store(at)
	if o.Transport == nil {
		dialer := &net.Dialer{Timeout: 5 * time.Second}
		c.own = &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, ExpectContinueTimeout: time.Second, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if socket := c.at.Load().socket; socket != "" {
				network, addr = "unix", socket
			}
			return dialer.DialContext(ctx, network, addr)
		}}
		o.Transport = c.own
	}
	c.http = &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// URL is where the server is.
func (c *Client) URL() string { return c.at.Load().url }

// Token is what it shows to the server, "" for nothing.
func (c *Client) Token() string { return c.at.Load().token }

// Close gives the connections up.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// request makes a request.
func (c *Client) request(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Request, error) {
	at := c.at.Load()
	target := at.base.JoinPath("/").String() + strings.TrimPrefix(path, "/")
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	at.authorise(req)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// ask makes a request whose repetition changes nothing, until there is an answer
// or patience ends, and decodes the answer into out unless that is nil.
func (c *Client) ask(ctx context.Context, method, path string, query url.Values, in, out any) error {
	return c.asking(ctx, method, path, query, in, out, true)
}

// once makes a request that is not repeated when it is not known what became of
// it: it is until there is a connection.
func (c *Client) once(ctx context.Context, method, path string, query url.Values, in, out any) error {
	return c.asking(ctx, method, path, query, in, out, false)
}

func (c *Client) asking(ctx context.Context, method, path string, query url.Values, in, out any, again bool) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	wait := c.newPause()
	defer wait.end()
	for {
		answer, err := c.answer(ctx, method, path, query, body)
		if err == nil {
			if out == nil || len(answer) == 0 {
				return nil
			}
			if err := json.Unmarshal(answer, out); err != nil {
				return fmt.Errorf("%s %s: read the answer: %w", method, path, err)
			}
			return nil
		}
		if told, ok := errors.AsType[*Error](err); ok {
			return told
		}
		if !again && arrived(err) || !wait.next(ctx, err) {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
}

// answer makes one request.
func (c *Client) answer(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
	req, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	return c.do(req)
}

// do makes a request and reads its answer.
func (c *Client) do(req *http.Request) ([]byte, error) {
	data, _, err := c.exchange(req)
	return data, err
}

// exchange is do, with what stands above the answer.
func (c *Client) exchange(req *http.Request) ([]byte, http.Header, error) {
	req, heard, done := c.attend(req)
	defer done()
	resp, err := c.send(req)
	if err != nil {
		return nil, nil, because(req.Context(), explained(err))
	}
	defer resp.Body.Close()
	heard()
	data, err := io.ReadAll(io.LimitReader(lively{resp.Body, heard}, maxAnswer))
	if err != nil {
		return nil, nil, because(req.Context(), fmt.Errorf("read the answer: %w", err))
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, nil, problem(resp.StatusCode, data)
	}
	return data, resp.Header, nil
}

// take makes a request once, as soon as there is a connection, and decodes its answer into out.
func (c *Client) take(req *http.Request, out any) error {
	_, err := c.taking(req, out)
	return err
}

// taking is take, with what stands above the answer.
func (c *Client) taking(req *http.Request, out any) (http.Header, error) {
	wait := c.newPause()
	defer wait.end()
	data, header, err := c.exchange(req)
	for err != nil && !arrived(err) && wait.next(req.Context(), err) {
		if req, err = c.anew(req); err == nil {
			data, header, err = c.exchange(req)
		}
	}
	if told, ok := errors.AsType[*Error](err); ok {
		return nil, told
	}
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, err)
	}
	return header, nil
}

// unwrapURL takes the address out of an error, which our own words name.
func unwrapURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// problem reads an answer that says no.
func problem(status int, data []byte) *Error {
	var body struct {
		Error Error `json:"error"`
	}
	if json.Unmarshal(data, &body) != nil || body.Error.Message == "" {
		body.Error = Error{Code: "unknown", Message: fmt.Sprintf("the server answered with status %d", status)}
	}
	body.Error.Status = status
	return &body.Error
}

// pause is the time between tries. It belongs to one goroutine.
type pause struct {
	patience time.Duration
	length   time.Duration
	begun    time.Time   // when this try began
	look     func() bool // whether the server is elsewhere by now
	watch    opportunity.Watch
	trouble  *opportunity.Meter // since the first try failed after there was progress; nil: none did
}

func (c *Client) newPause() *pause {
	return &pause{patience: c.o.Patience, length: pauseFirst, begun: time.Now(), look: c.refind}
}

// progress says that a try went well.
func (p *pause) progress() {
	p.end()
	p.length = pauseFirst
}

// end is called when there is no next try; it may be called again.
func (p *pause) end() {
	if p.trouble != nil {
		p.trouble = nil
		p.watch.Stop()
	}
}

// alive says that the server gives a sign of life. One that has done so for as long as
// patience lasts is in reach, though it may have nothing to say.
func (p *pause) alive() {
	if time.Since(p.begun) >= p.patience {
		p.end()
	}
}

// next waits after a try that failed with err, and reports whether there is a next one.
func (p *pause) next(ctx context.Context, err error) bool {
	if hopeless(err) {
		return false
	}
	if p.trouble == nil {
		p.watch.Start()
		p.trouble = opportunity.Begin(nil, &p.watch)
	}
	if p.trouble.Opportunity() >= p.patience {
		return false
	}
	timer := time.NewTimer(p.length)
	defer timer.Stop()
	p.length = min(2*p.length, pauseMost)
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		p.look()
		p.begun = time.Now()
		return true
	}
}
