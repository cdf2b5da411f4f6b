package fleetapi

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// headerMoved says, in an answer, that the session of a request is at the node that it names:
// nothing was done.
const headerMoved = "Coppice-Moved"

// errMoved is why what was sent to a node was not done there: another has the session by now.
const errMoved = relay.NotDone("another node has the session")

// errNotThere is why an execution is looked for at other nodes: the one where it was begun, as far as
// this one knew, knows none of the name.
const errNotThere = relay.NotDone("the node does not know the execution")

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

// forward sends a request on to another node, whose answer the client gets, streams as they
// come. body is that of the request, once more for each attempt; nil: it is sent as it comes.
// once says that the node does it once, however often it comes: it is sent again when a
// connection that was kept open ends without an answer, which else is done only when nothing
// of it was written. The request is given up when the node is no more; what another life of
// its server says of it did not reach it.
func (n *Node) forward(w http.ResponseWriter, r *http.Request, p *peer, body []byte, once bool) (relay.Outcome, error) {
	target, err := url.Parse(p.URL)
	if err != nil {
		return relay.Undelivered, err
	}
	n.counts.forwarded.Inc()
	return relay.To{
		Target: target, Transport: n.o.Transport, Body: body, Once: once, Gone: p.gone, Logger: n.o.Logger,
		Rewrite: func(out *http.Request) {
			out.Header.Set(HeaderNode, p.ID)
			out.Header.Del(httpserver.HeaderServer) // it named a life of this one
		},
		Answered: func(_ context.Context, resp *http.Response) error {
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
			return nil
		},
	}.Send(w, r)
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
