// Package relay sends a request of an HTTP server on to another server, whose answer the client gets,
// and says what became of it. Any goroutine may call it; it has none.
package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"github.com/coppice-run/coppice/internal/inbound"
)

// keys are the headers by which net/http takes a request for one that may be sent again.
var keys = []string{"Idempotency-Key", "X-Idempotency-Key"}

// Outcome is what became of a request that was sent on.
type Outcome int

const (
	// Answered: the client has the answer, or as much of it as came.
	Answered Outcome = iota
	// Undelivered: it did not arrive.
	Undelivered
	// Unknown: it may have arrived, and there is no answer.
	Unknown
)

// NotDone is an error of [To].Answered which says that a request was not done where it was sent.
type NotDone string

// Error implements error.
func (e NotDone) Error() string { return string(e) }

// ErrGone is why a request was given up: To.Gone has ended.
var ErrGone = errors.New("the node is dead, or has left the fleet")

// To is how a request is sent on to another server.
type To struct {
	Target    *url.URL
	Transport http.RoundTripper
	// Body is that of the request, once more for each attempt; nil: it is sent as it comes.
	Body []byte
	// Once says that the server does it once, however often it comes.
	Once bool
	// Gone ends when what is sent there is given up.
	Gone context.Context //nolint:containedctx // it is that of the server
	// Rewrite changes what is sent. Answered is asked before anything of the answer leaves, with
	// a context that ends with the request or with Gone; a NotDone says that nothing was
	// done.
	Rewrite  func(out *http.Request)
	Answered func(ctx context.Context, resp *http.Response) error
	Logger   *slog.Logger
}

// Send sends a request on. The client gets the answer, streams as they come.
func (s To) Send(w http.ResponseWriter, r *http.Request) (state Outcome, err error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.Gone, func() { cancel(ErrGone) })()
	out := r.Clone(ctx)
	if s.Body == nil {
		w, out = inbound.Relayed(w, out)
	} else {
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(s.Body)), nil }
		if out.Body, _ = out.GetBody(); len(s.Body) == 0 { // it never fails
			out.Body, out.GetBody = http.NoBody, func() (io.ReadCloser, error) { return http.NoBody, nil }
		}
		out.ContentLength = int64(len(s.Body))
		for _, name := range keys { // what the client calls by one is not known here
			out.Header.Del(name)
		}
	}
	transport := s.Transport
	if s.Once && s.Body != nil {
		transport = again{transport}
	}
	state = Answered
	proxy := httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(s.Target)
			s.Rewrite(pr.Out)
			// That the page may ask was looked at here; there, its port is another.
			for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
				pr.Out.Header.Del(name)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if err := s.Answered(ctx, resp); err != nil {
				return err
			}
			for name := range resp.Header { // what this server has set stands in the answer once
				w.Header().Del(name)
			}
			return nil
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, failed error) {
			inbound.Unsent(w, r)
			state, err = Unknown, failed
			op, ok := errors.AsType[*net.OpError](failed)
			if _, not := errors.AsType[NotDone](failed); not || ok && op.Op == "dial" {
				state = Undelivered
			}
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
		},
	}
	proxy.ServeHTTP(w, out)
	return state, err
}

// again sends a request once more when a connection that was kept open ends without an answer,
// in whatever moment: net/http does so for those moments alone in which it reads.
type again struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (a again) RoundTrip(r *http.Request) (*http.Response, error) {
	var kept atomic.Bool
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { kept.Store(i.Reused) }})
	for {
		resp, err := a.RoundTripper.RoundTrip(r.WithContext(ctx))
		if err == nil || !kept.Swap(false) || ctx.Err() != nil {
			return resp, err
		}
		body, e := r.GetBody()
		if e != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = body
	}
}
