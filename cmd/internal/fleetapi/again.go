package fleetapi

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
)

// had reports whether a request was answered that names an epoch which has ended in order: it
// is where it has begun then, if it has, and what cannot be known to be new is refused.
func (n *Node) had(w http.ResponseWriter, r *http.Request, t about.Target, c *claim, past fleet.Past) bool {
	if t.Execution == "" || past.Node == n.ID() {
		return false // this node would know it
	}
	epoch, _ := httpserver.Epoch(r) // it was read before
	status, err := http.StatusGone, error(nil)
	p := n.peer(past.Node)
	if (p == nil || p.URL == n.url) && past.All {
		return false // it is known here
	}
	if p != nil && p.URL != n.url {
		status, _, err = n.ask(r.Context(), r, p, "/api/executions/"+url.PathEscape(t.Execution))
	}
	switch {
	case err == nil && status == http.StatusNotFound:
		return false
	case err == nil && status == http.StatusGone: // nobody knows any more
		n.refuse(r.Context(), w, gone(epoch, c.own.Epoch(), c.left()))
		return true
	case err == nil && status == http.StatusOK:
		n.place(t.Execution, p.ID)
		w.Header().Del(HeaderNode)
		state := relay.Answered
		if state, err = n.forward(w, r, p, t.Body, true); state == relay.Answered {
			return true
		}
	case err == nil:
		err = fmt.Errorf("it answers with status %d", status)
	}
	n.refuse(r.Context(), w, n.away(past.Node, err))
	return true
}
