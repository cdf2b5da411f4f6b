package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// How long a server may say nothing before it counts as out of reach.
const (
	// leastAnswer is the least that an answer is waited for: less patience is for tries, not for
	// a machine that is busy.
	leastAnswer = time.Second
	// signOfLife is how often a server gives a stream one, and longestSilence after how long
	// without a stream is taken for broken at most. What is so too early is only made again.
	signOfLife     = 15 * time.Second
	longestSilence = 45 * time.Second
)

// errNoAnswer ends a request whose server has said nothing for as long as patience lasts.
var errNoAnswer = errors.New("the server does not answer")

// answerLimit is how long an answer is waited for that is there at once. Without patience nothing
// is tried again, but an answer is waited for.
func answerLimit(patience time.Duration) time.Duration {
	if patience <= 0 {
		return defaultPatience
	}
	return max(patience, leastAnswer)
}

// atOnce reports whether a request is answered at once: it asks what there is, and nothing that
// takes long to find.
func atOnce(req *http.Request) bool {
	path := req.URL.Path
	return req.Method == http.MethodGet && !req.URL.Query().Has("wait") &&
		!strings.HasSuffix(path, "/files/list") && !strings.HasSuffix(path, "/notebook") && !strings.HasSuffix(path, "/api/events")
}

// attend ends a request when its server is out of reach: when one that is answered at once is
// not, or, for another one, when the server does not say how it is meanwhile. heard is called
// when something of the answer has come, done when nothing follows.
func (c *Client) attend(req *http.Request) (_ *http.Request, heard, done func()) {
	ctx, cancel := context.WithCancelCause(req.Context())
	over := func() { cancel(errNoAnswer) }
	req = req.WithContext(ctx)
	if atOnce(req) {
		quiet := newSilence(c.answering, over)
		return req, quiet.heard, func() {
			quiet.end()
			cancel(nil)
		}
	}
	go c.lookOut(ctx, over) // ends with the request
	return req, func() {}, func() { cancel(nil) }
}

// lookOut calls over when the server says nothing at all, until ctx ends.
func (c *Client) lookOut(ctx context.Context, over func()) {
	timer := time.NewTimer(c.answering / 8)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if c.silent(ctx) {
			over()
			return
		}
		timer.Reset(c.answering / 2)
	}
}

// silent reports whether the server does not say how it is. One that takes no connections any
// more may be about to end, and answers before it does what it was asked.
func (c *Client) silent(ctx context.Context) bool {
	for begun := time.Now(); ctx.Err() == nil; {
		req, err := c.request(ctx, http.MethodGet, "api/health", nil, nil)
		if err == nil {
			_, err = c.do(req)
		}
		dial, unconnected := errors.AsType[*net.OpError](err)
		switch {
		case errors.Is(err, errNoAnswer):
			return true
		case !unconnected || dial.Op != "dial" || !dial.Timeout():
			return false
		case time.Since(begun) >= c.answering:
			return true
		}
	}
	return false
}

// open makes a request whose answer is read as it comes: the server is out of reach that says
// nothing while someone waits for it.
func (c *Client) open(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	over := func() { cancel(errNoAnswer) }
	quiet := newSilence(c.answering, over)
	resp, err := c.send(req.WithContext(ctx))
	quiet.end()
	if err != nil {
		err = because(ctx, explained(err))
		cancel(nil)
		return nil, err
	}
	resp.Body = &awaited{resp.Body, ctx, cancel, c.answering}
	return resp, nil
}

// awaited is the body of an answer, each read of which ends when nothing comes for so long.
type awaited struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // it is that of the request whose answer this is
	cancel context.CancelCauseFunc
	limit  time.Duration
}

// Read reads.
func (a *awaited) Read(p []byte) (int, error) {
	quiet := newSilence(a.limit, func() { a.cancel(errNoAnswer) })
	defer quiet.end()
	n, err := a.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = because(a.ctx, err)
	}
	return n, err
}

// Close gives the answer up.
func (a *awaited) Close() error {
	defer a.cancel(nil)
	return a.ReadCloser.Close()
}

// untrustedError is a server that cannot be trusted, or speaks no TLS: trying again does not
// help.
type untrustedError struct {
	err  error
	hint string
}

// Error returns the problem, and what helps.
func (e *untrustedError) Error() string { return fmt.Sprintf("%v; %s", e.err, e.hint) }

// Unwrap returns the problem.
func (e *untrustedError) Unwrap() error { return e.err }

// explained is why a request failed, without the address, which our own words name.
func explained(err error) error {
	err = unwrapURL(err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, header := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case certificate:
		return &untrustedError{err, "to trust an authority of your own, name the file of its certificate in SSL_CERT_FILE, or give the client a Transport that knows it"}
	case header || errors.Is(err, http.ErrSchemeMismatch):
		return &untrustedError{err, "is it http in place of https?"}
	}
	return err
}

// hopeless reports whether trying again does not help, or patience ended with the try itself.
func hopeless(err error) bool {
	_, untrusted := errors.AsType[*untrustedError](err)
	return untrusted || errors.Is(err, errNoAnswer)
}
