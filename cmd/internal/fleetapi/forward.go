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

	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/internal/inbound"
)

// sent is what became of a request that was sent on.
type sent int

const (
	// answered: the client has the answer, or as much of it as came.
	answered sent = iota
	// undelivered: it did not arrive.
	undelivered
	// unknown: it may have arrived, and there is no answer.
	unknown
)

// headerMoved says, in an answer, that the session of a request is at the node that it names:
// nothing was done.
const headerMoved = "Coppice-Moved"

// errMoved is why what was sent to a node was not done there: another has the session by now.
var errMoved = errors.New("another node has the session")

// errNotThere is why an execution is looked for at other nodes: the one where it was begun, as far as
// this one knew, knows none of the name.
var errNotThere = errors.New("the node does not know the execution")

// placedKey and hintedKey are keys under which a request that is sent on has the execution that it begins, which
// is at the node that takes it, and that it looks for one where that may be.
type (
	placedKey struct{}
	hintedKey struct{}
)

// placing is a request that begins an execution; "": it begins none.
func placing(r *http.Request, execution string) *http.Request {
	if execution == "" {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), placedKey{}, execution))
}

// hinted is a request about an execution that is sent to where it may be.
func hinted(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), hintedKey{}, true))
}

// keys are the headers by which net/http takes a request for one that may be sent again.
var keys = []string{"Idempotency-Key", "X-Idempotency-Key"}

// forward sends a request on to another node, whose answer the client gets, streams as they
// come. body is that of the request, once more for each attempt; nil: it is sent as it comes.
// once says that the node does it once, however often it comes: it is sent again when a
// connection that was kept open ends without an answer, which else is done only when nothing
// of it was written. The request is given up when the node is no more; what another life of
// its server says of it did not reach it.
func (n *Node) forward(w http.ResponseWriter, r *http.Request, p *peer, body []byte, once bool) (sent, error) {
	target, err := url.Parse(p.URL)
	if err != nil {
		return undelivered, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(p.gone, func() { cancel(errGone) })()
	out := r.Clone(ctx)
	if body == nil {
		out = inbound.Relayed(w, out)
	} else {
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		if out.Body, _ = out.GetBody(); len(body) == 0 { // it never fails
			out.Body, out.GetBody = http.NoBody, func() (io.ReadCloser, error) { return http.NoBody, nil }
		}
		out.ContentLength = int64(len(body))
		for _, name := range keys { // what the client calls by one is not known here
			out.Header.Del(name)
		}
	}
	transport := n.o.Transport
	if once && body != nil {
		transport = again{transport}
	}
	n.counts.forwarded.Inc()
	state := answered
	proxy := httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(target)
			pr.Out.Header.Set(HeaderNode, p.ID)
			// That the page may ask was looked at here; there, its port is another.
			for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
				pr.Out.Header.Del(name)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode == http.StatusGone && resp.Header.Get(HeaderNode) != p.ID {
				return errOther
			}
			if resp.Header.Get(headerMoved) != "" && r.Header.Get(HeaderNode) == "" {
				return errMoved
			}
			if resp.StatusCode == http.StatusNotFound && r.Context().Value(hintedKey{}) != nil {
				return errNotThere
			}
			if execution, begins := r.Context().Value(placedKey{}).(string); begins && resp.StatusCode < http.StatusMultipleChoices {
				n.place(execution, p.ID)
			}
			for name := range resp.Header { // what this server has set stands in the answer once
				w.Header().Del(name)
			}
			return nil
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(n.o.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, failed error) {
			inbound.Unsent(w, r)
			state, err = unknown, failed
			if op, ok := errors.AsType[*net.OpError](failed); ok && op.Op == "dial" || errors.Is(failed, errOther) || errors.Is(failed, errMoved) || errors.Is(failed, errNotThere) {
				state = undelivered
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

// ask makes a request of one's own to another node, in the name of one that came: for the
// status and the whole answer.
func (n *Node) ask(ctx context.Context, r *http.Request, p *peer, pathAndQuery string) (status int, answer []byte, err error) {
	status, page, err := n.page(ctx, r.Header, p, pathAndQuery)
	return status, page.Body, err
}

// credentials are the headers that say who asks.
var credentials = []string{"Authorization", "X-Api-Key"}

// page is ask with the header of the answer, in the name of whoever a header names.
func (n *Node) page(ctx context.Context, from http.Header, p *peer, pathAndQuery string) (status int, page dialect.Page, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.o.TTL/2)
	defer cancel()
	defer context.AfterFunc(p.gone, cancel)()
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+pathAndQuery, http.NoBody)
	if err != nil {
		return 0, page, err
	}
	for _, name := range credentials {
		if v := from.Get(name); v != "" {
			out.Header.Set(name, v)
		}
	}
	out.Header.Set(HeaderNode, p.ID)
	resp, err := n.o.Transport.RoundTrip(out)
	if err != nil {
		return 0, page, err
	}
	defer resp.Body.Close()
	page.Header = resp.Header
	page.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxList))
	return resp.StatusCode, page, err
}

// maxList bounds the answer of a node about what it has, in bytes.
const maxList = 64 << 20
