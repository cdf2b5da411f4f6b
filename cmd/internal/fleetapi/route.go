package fleetapi

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
)

// Wrap has requests to mounts go to the node that they belong to.
func (n *Node) Wrap(mounts []httpserver.Mount) []httpserver.Mount {
	routes := n.Routes()
	maps.Copy(routes, map[string]func(http.Handler) http.Handler{
		"POST /api/sessions/{session}/save": n.saves, "DELETE /api/saved-checkpoints/{name}": n.dropsSaved, "DELETE /api/checkpoints/{id}": n.wherever,

		"GET /api/executions/{id}": n.byID, "GET /api/executions/{id}/events": n.byID,
		"POST /api/executions/{id}/input": n.byID, "POST /api/executions/{id}/cancel": n.byID,

		"GET /api/sessions": n.merged("sessions"), "GET /api/executions": n.merged("executions"), "GET /api/checkpoints": n.merged("checkpoints"),
		"GET /api/tree": n.tree(), "GET /api/overview": n.overview(), "GET /api/story": n.story,
		"GET /api/saved-checkpoints": n.merged("checkpoints"), "GET /api/workspaces": n.merged("workspaces"),
	})
	wrapped := make([]httpserver.Mount, 0, len(mounts))
	for _, m := range mounts {
		if wrap := routes[m.Pattern]; wrap != nil {
			m.Handler = wrap(m.Handler)
		} else if about.IsInWorkspace(m.Pattern) {
			m.Handler = n.InWorkspace(m.Handler)
		}
		switch {
		case !m.Public:
			m.Handler = n.addressed(m.Handler)
		case m.Pattern == healthRoute:
			m.Handler = n.named(m.Handler)
		}
		wrapped = append(wrapped, m)
	}
	if n.o.Leave != nil {
		m := n.drainMount()
		m.Handler = n.addressed(m.Handler)
		wrapped = append(wrapped, m)
	}
	return wrapped
}

// healthRoute answers without the token too.
const healthRoute = "GET /api/health"

// named says to those who have the token which node answers: clients learn by it that what they
// send again is a fleet's to judge.
func (n *Node) named(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if me := n.ID(); me != "" && httpserver.Trusted(r.Context()) {
			w.Header().Set(HeaderNode, me)
		}
		h.ServeHTTP(w, r)
	})
}

// addressed sends requests on that name another node. Those that name this one are served
// by it, wherever what they are about may be.
func (n *Node) addressed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, me := r.Header.Get(HeaderNode), n.ID()
		if me != "" {
			w.Header().Set(HeaderNode, me)
		}
		if id == "" || id == me {
			h.ServeHTTP(w, r)
			return
		}
		p := n.peer(id)
		if p == nil || p.URL == n.url { // of a life of this process that is over
			n.refuse(r.Context(), w, Lost("what was asked for", id))
			return
		}
		w.Header().Del(HeaderNode)
		if state, err := n.forward(w, r, p, nil, false); state != relay.Answered {
			n.refuse(r.Context(), w, n.unanswered(r, p, state, err))
		}
	})
}

// unanswered is the answer for a request to which a node gave none.
func (n *Node) unanswered(r *http.Request, p *peer, state relay.Outcome, err error) error {
	switch {
	case state == relay.Undelivered:
		return n.away(p.ID, err)
	case errors.Is(err, relay.ErrGone):
		return Lost("what became of the request", p.ID)
	case r.Method == http.MethodGet:
		return n.away(p.ID, err)
	default:
		return Refusal(http.StatusBadGateway, "unanswered", "node "+p.ID+" gave no answer; whether the request was done is not known: "+err.Error(), "ask what became of it before it is sent again", 0)
	}
}

// route has a request served by the owner of its session, or by this node when nobody owns
// it. An owner that cannot be reached is asked again until it is known to be dead.
func (n *Node) route(w http.ResponseWriter, r *http.Request, h http.Handler, t about.Target) {
	if t.Execution != "" && n.epochOf(t.Key) == 0 && n.o.Knows(t.Execution) {
		h.ServeHTTP(w, r) // it is not begun again, and its session was given up since
		return
	}
	at, err := wanted(r) // without the nodes at which it was to begin, and that were not there
	if err != nil {
		n.refuse(r.Context(), w, err)
		return
	}
	for wait, tries := firstPause, time.Now(); ; {
		c, id, err := n.find(r.Context(), t, r.Header.Get(HeaderNode) != "", at)
		switch {
		case err != nil:
			n.refuse(r.Context(), w, err)
			return
		case c != nil:
			w.Header().Set(HeaderNode, n.ID()) // another may have been asked before
			defer c.free()                     // also when the answer is cut off
			n.serve(w, r, h, t, c)
			return
		case id == "" && t.Starts && n.isDraining() && !n.o.Knows(t.Execution): // in a workspace, which is nowhere
			n.refuse(r.Context(), w, n.ending())
			return
		case id == "": // there is nothing of it anywhere
			h.ServeHTTP(w, r)
			return
		case r.Header.Get(HeaderNode) != "":
			w.Header().Set(headerMoved, id)
			n.refuse(r.Context(), w, Refusal(http.StatusServiceUnavailable, "moved", "the session is at node "+id, "ask without the header "+HeaderNode, firstPause))
			return
		}
		state, failed := relay.Undelivered, error(relay.ErrGone) // it is not in the list yet, or no more
		if p := n.peer(id); p != nil && p.URL != n.url {
			w.Header().Del(HeaderNode)
			if state, failed = n.forward(w, placing(r, t.Execution), p, t.Body, t.Starts && t.Execution != "" || t.Once); state == relay.Answered {
				return
			}
			if state == relay.Unknown && (r.Method != http.MethodGet || r.Context().Err() != nil) || t.Spent(r, failed) {
				n.refuse(r.Context(), w, n.unanswered(r, p, state, failed))
				return
			}
		}
		if state == relay.Undelivered && !errors.Is(failed, errMoved) && !slices.Contains(at.avoid, id) {
			at.avoid = append(at.avoid, id) // its owner, if it is that, is asked again all the same
		}
		if time.Since(tries) > 2*n.o.TTL || !pause.Wait(r.Context(), &wait) {
			n.refuse(r.Context(), w, n.away(id, failed))
			return
		}
	}
}

// find claims the key of a request, or says which node has it, or is to have it: "" when none
// has. named says that the request names this node; at is where it may begin.
func (n *Node) find(ctx context.Context, t about.Target, named bool, at where) (*claim, string, error) {
	ctx, cancel := context.WithTimeout(ctx, n.o.TTL/2)
	defer cancel()
	m, _ := n.now()
	if m == nil {
		return nil, "", fleet.ErrSuspended
	}
	claims := t.Claims || t.Ends != "" && n.o.Records != nil // of what is kept, too
	spread := claims && (n.o.Spread || n.o.Front || len(at.want) > 0) && !named && n.epochOf(t.Key) == 0
	if draining := n.isDraining(); !spread && (!claims || draining) && n.epochOf(t.Key) == 0 {
		id, _, err := m.Owner(ctx, t.Key.ID())
		if err != nil || id != m.ID() && (id != "" || !claims) {
			return nil, id, err
		}
		if draining {
			return nil, "", fleet.ErrDraining
		}
	}
	if n.epochOf(t.Key) == 0 {
		if id, err := n.begins(ctx, m, t, named, at); err != nil || id != m.ID() {
			return nil, id, err
		}
	}
	c, err := n.take(ctx, t.Key)
	if owned, ok := errors.AsType[*fleet.OwnedError](err); ok {
		return nil, owned.Node, nil
	}
	return c, "", err
}

// serve has the handler of this node serve a request, in the epoch of a claim.
func (n *Node) serve(w http.ResponseWriter, r *http.Request, h http.Handler, t about.Target, c *claim) {
	w.Header().Set(HeaderEpoch, strconv.FormatUint(c.own.Epoch(), 10))
	if t.Execution != "" && n.o.Knows(t.Execution) {
		h.ServeHTTP(w, r)
		return
	}
	if (t.Claims || t.Made != nil || t.Starts) && n.isDraining() {
		n.refuse(r.Context(), w, n.ending())
		return
	}
	if t.Streams {
		n.stream(w, r, h, t, c)
		return
	}
	epoch, err := httpserver.Epoch(r)
	past, behind := c.own.Past(), false
	switch {
	case err != nil:
	case epoch != 0 && epoch == c.own.Used() && t.Starts && past.Why != "":
		if n.had(w, r, t, c, past) {
			return
		}
		epoch, behind = c.own.Epoch(), true
	case epoch != 0 && (epoch <= c.own.Used() || epoch < c.own.First() || epoch > c.own.Epoch()):
		err = gone(epoch, c.own.Epoch(), c.left())
	case epoch != 0:
		// Nothing was begun since the one that it names: that may have been given up while
		// the client took notice of it.
		epoch = c.own.Epoch()
	case epoch == 0 && t.Starts && c.own.Used() > 0:
		err = needed(c.own, c.left())
	}
	if err != nil {
		n.refuse(r.Context(), w, err)
		return
	}
	if t.Starts {
		h.ServeHTTP(w, r.WithContext(httpapi.WithEnter(r.Context(), func(ctx context.Context, id string) (httpapi.Turn, error) {
			return n.enter(ctx, c, fleet.Call{ID: id, Epoch: epoch}, behind)
		})))
		return
	}
	begun, err := c.own.Begin(r.Context(), fleet.Call{Epoch: epoch})
	if err != nil {
		n.refuse(r.Context(), w, err)
		return
	}
	held := newBuffer()
	held.serve(h, r)
	if t.Made != nil && held.status == http.StatusCreated {
		err = n.adopt(r.Context(), t, held.body.Bytes())
	}
	if t.Ends != "" && held.status < http.StatusBadRequest && c.own.Past().Kept != "" {
		n.changed(t.Key, t.Ends) // it may have had no kernel, whose end would say so
	}
	if err == nil {
		err = begun.Answer(r.Context())
	}
	if err != nil {
		n.refuse(r.Context(), w, err)
		return
	}
	held.to(w)
}

// enter begins the turn of an execution. behind says that its caller knows an earlier epoch.
func (n *Node) enter(ctx context.Context, c *claim, call fleet.Call, behind bool) (httpapi.Turn, error) {
	begun, err := c.own.Begin(ctx, call)
	if err != nil {
		no := n.refused(err)
		n.counts.refused.WithLabelValues(no.Code).Inc()
		return nil, no
	}
	return turn{begun, c.again(), c.news(behind)}, nil
}
