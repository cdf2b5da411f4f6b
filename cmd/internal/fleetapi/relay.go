package fleetapi

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

// relay is how a request is sent on to another server.
type relay struct {
	target    *url.URL
	transport http.RoundTripper
	// body is that of the request, once more for each attempt; nil: it is sent as it comes.
	body []byte
	// once says that the server does it once, however often it comes.
	once bool
	// gone ends when what is sent there is given up.
	gone context.Context //nolint:containedctx // it is that of the server
	// rewrite changes what is sent. answered is asked before anything of the answer leaves, with
	// a context that ends with the request or with gone; one of undeliveredErrors says that nothing
	// was done.
	rewrite  func(out *http.Request)
	answered func(ctx context.Context, resp *http.Response) error
	logger   *slog.Logger
}

// undeliveredErrors are those of relay.answered by which a request did not arrive where it was
// meant to.
var undeliveredErrors = []error{errOther, errMoved, errNotThere}

// send sends a request on. The client gets the answer, streams as they come.
func (s relay) send(w http.ResponseWriter, r *http.Request) (state sent, err error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.gone, func() { cancel(errGone) })()
	out := r.Clone(ctx)
	if s.body == nil {
		out = inbound.Relayed(w, out)
	} else {
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(s.body)), nil }
		if out.Body, _ = out.GetBody(); len(s.body) == 0 { // it never fails
			out.Body, out.GetBody = http.NoBody, func() (io.ReadCloser, error) { return http.NoBody, nil }
		}
		out.ContentLength = int64(len(s.body))
		for _, name := range keys { // what the client calls by one is not known here
			out.Header.Del(name)
		}
	}
	transport := s.transport
	if s.once && s.body != nil {
		transport = again{transport}
	}
	state = answered
	proxy := httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(s.target)
			s.rewrite(pr.Out)
			// That the page may ask was looked at here; there, its port is another.
			for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
				pr.Out.Header.Del(name)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if err := s.answered(ctx, resp); err != nil {
				return err
			}
			for name := range resp.Header { // what this server has set stands in the answer once
				w.Header().Del(name)
			}
			return nil
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, failed error) {
			inbound.Unsent(w, r)
			state, err = unknown, failed
			if op, ok := errors.AsType[*net.OpError](failed); ok && op.Op == "dial" {
				state = undelivered
			}
			for _, one := range undeliveredErrors {
				if errors.Is(failed, one) {
					state = undelivered
				}
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
