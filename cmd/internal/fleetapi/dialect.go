package fleetapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
	"github.com/coppice-run/coppice/messages"
)

// HeaderUnreachable names, in a merged answer of a dialect, the nodes that gave none.
const HeaderUnreachable = "Coppice-Unreachable"

// Speak has requests to a mount, which are in a dialect, go to the node that they belong to. What
// it returns is for [Node.Wrap], as other mounts are.
func (n *Node) Speak(d dialect.Dialect, m httpserver.Mount) httpserver.Mount {
	h := m.Handler
	m.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), refusing{}, func(w http.ResponseWriter, no *httpserver.Refusal) { d.Refuse(w, r, no) }))
		t := about.Target{Streams: d.Streams(r)}
		if !t.Streams {
			data, err := io.ReadAll(io.LimitReader(r.Body, about.MaxBody+1))
			r.Body = about.Again(data, err, r.Body)
			if err != nil || len(data) > about.MaxBody {
				h.ServeHTTP(w, r) // which says what is wrong with it
				return
			}
			t.Body = data
		}
		a := d.About(r, t.Body)
		if a.Merge != nil {
			n.mergePages(w, r, h, a.Merge)
			return
		}
		if a.Made != nil {
			t.Made = func(answer []byte) ([]messages.SessionKey, error) { return a.Made(answer), nil }
		}
		if len(a.Near) > maxQuestion {
			n.refuse(r.Context(), w, Refusal(http.StatusBadRequest, "bad_request", "the name of what is asked for is too long", fmt.Sprintf("use one of at most %d bytes, written as part of an address", maxQuestion), 0))
			return
		}
		if a.Near != "" {
			there, done := n.near(w, r, h, a.Near, t.Body)
			switch {
			case done:
				return
			case there: // what is made of it begins here
				r.Header.Set(HeaderNode, n.ID())
				a.Anywhere = ""
			case a.Anywhere == "":
				h.ServeHTTP(w, r) // it says that there is none
				return
			}
		}
		switch {
		case a.Workspace != "":
			t.Key, t.Claims, t.Once, t.Begins = about.WorkspaceKey(a.Workspace), a.Makes, a.Makes, a.Begins
			n.route(w, r, h, t)
		case a.Session != messages.SessionKey{}:
			t.Key, t.Claims, t.Begins, t.Streams = a.Session, a.Makes, a.Begins, true
			n.route(w, r, h, t)
		case a.Anywhere != "":
			n.anywhere(w, r, h, t.Body, a)
		case a.Holds != messages.SessionKey{}:
			n.holding(w, r, h, a.Holds)
		default:
			h.ServeHTTP(w, r)
		}
	})
	return m
}

// maxQuestion bounds what other nodes are asked, in bytes: it stands in the address of a request.
const maxQuestion = 4 << 10

// mergePages answers with what all nodes have answered. One that was sent on is answered
// with what this node has.
func (n *Node) mergePages(w http.ResponseWriter, r *http.Request, h http.Handler, merge func(http.ResponseWriter, []dialect.Page)) {
	held := newBuffer()
	held.serve(h, r)
	if r.Header.Get(HeaderNode) != "" || held.status != http.StatusOK {
		held.to(w)
		return
	}
	others := n.others()
	pages, heard := make([]dialect.Page, len(others)), make([]bool, len(others))
	var asked sync.WaitGroup
	for i, p := range others {
		asked.Go(func() {
			status, a, err := n.page(r.Context(), r.Header, p, r.URL.RequestURI())
			heard[i] = err == nil && status == http.StatusOK
			pages[i] = a
		})
	}
	asked.Wait()
	all, silent := []dialect.Page{{Header: held.header, Body: held.body.Bytes()}}, []string(nil)
	for i, p := range others {
		if heard[i] {
			all = append(all, pages[i])
		} else {
			silent = append(silent, p.ID)
		}
	}
	if len(silent) > 0 {
		w.Header().Set(HeaderUnreachable, strings.Join(silent, ","))
	}
	merge(w, all)
}

// near reports whether this node answers a question with 200. When another one does, or may, it
// is sent the request, which is answered then.
func (n *Node) near(w http.ResponseWriter, r *http.Request, h http.Handler, question string, body []byte) (here, done bool) {
	ask, err := url.Parse(question)
	if err != nil {
		return false, false // nobody has what is called so
	}
	own := r.Clone(r.Context())
	own.Method, own.Body, own.ContentLength, own.URL = http.MethodGet, http.NoBody, 0, ask
	held := newBuffer()
	held.serve(h, own)
	if r.Header.Get(HeaderNode) != "" || held.status == http.StatusOK {
		return held.status == http.StatusOK, false
	}
	p, silent := n.who(r, ask.RequestURI())
	switch {
	case p != nil:
		if state, err := n.forward(w, r, p, body, false); state != relay.Answered {
			n.refuse(r.Context(), w, n.unanswered(r, p, state, err))
		}
	case silent != nil:
		n.refuse(r.Context(), w, silent)
	}
	return false, p != nil || silent != nil
}

// who is the other node that answers a question with 200, nil when all say that they do not.
// silent is the refusal where one says nothing.
func (n *Node) who(r *http.Request, question string) (found *peer, silent error) {
	if p := n.peer(n.placeOf(question)); p != nil && p.URL != n.url {
		if status, _, err := n.page(r.Context(), r.Header, p, question); err == nil && status == http.StatusOK {
			return p, nil
		}
	}
	others := n.others()
	has, failed := make([]bool, len(others)), make([]error, len(others))
	var asked sync.WaitGroup
	for i, p := range others {
		asked.Go(func() {
			status, _, err := n.page(r.Context(), r.Header, p, question)
			has[i], failed[i] = status == http.StatusOK, err
		})
	}
	asked.Wait()
	for i, p := range others {
		if has[i] {
			n.place(question, p.ID)
			return p, nil
		}
		if failed[i] != nil {
			silent = n.away(p.ID, failed[i])
		}
	}
	return nil, silent
}

// anywhere has a request served at the node that its name chooses.
func (n *Node) anywhere(w http.ResponseWriter, r *http.Request, h http.Handler, body []byte, a dialect.About) {
	at, err := wanted(r)
	if err != nil {
		n.refuse(r.Context(), w, err)
		return
	}
	here := r.Header.Get(HeaderNode) != "" || !n.o.Spread && !n.o.Front && len(at.want) == 0
	choose := n.choose
	if a.Alike {
		choose = n.first
	}
	for wait := firstPause; ; {
		id := n.ID()
		if !here {
			id = n.chosen(r.Context(), choose, a.Anywhere, at)
		}
		switch {
		case here && n.o.Front:
			n.refuse(r.Context(), w, n.noSessions())
			return
		case id == "":
			n.refuse(r.Context(), w, n.noNode(at))
			return
		case id == n.ID():
			n.beginning(w, r, h)
			return
		}
		p := n.peer(id)
		if p == nil {
			at.avoid = append(at.avoid, id)
			continue
		}
		state, err := n.forward(w, r, p, body, false)
		switch {
		case state == relay.Answered:
			return
		case state == relay.Unknown || slices.Contains(at.avoid, id) || !pause.Wait(r.Context(), &wait):
			n.refuse(r.Context(), w, n.unanswered(r, p, state, err))
			return
		}
		at.avoid = append(at.avoid, id)
	}
}

// beginning serves a request that begins something here, whose handler makes it this node's ([Node.Own]).
func (n *Node) beginning(w http.ResponseWriter, r *http.Request, h http.Handler) {
	switch {
	case n.isDraining():
		n.refuse(r.Context(), w, n.leaving())
	case !n.leased():
		n.refuse(r.Context(), w, fleet.ErrSuspended)
	default:
		h.ServeHTTP(w, r)
	}
}

// Own makes a session this node's, as long as something of it lives, or until done is called. The
// error is what [Node.Speak] refuses a request by.
func (n *Node) Own(ctx context.Context, key messages.SessionKey) (done func(), err error) {
	c, err := n.claimed(ctx, key)
	if err != nil {
		return nil, n.refused(err)
	}
	return c.free, nil
}

// claimed claims a key that has to be this node's.
func (n *Node) claimed(ctx context.Context, key messages.SessionKey) (*claim, error) {
	ctx, cancel := context.WithTimeout(ctx, n.o.TTL/2)
	defer cancel()
	c, err := n.take(ctx, key)
	if owned, ok := errors.AsType[*fleet.OwnedError](err); ok {
		return nil, Refusal(http.StatusConflict, "moved", key.String()+" is at node "+owned.Node+" by now, and this one has nothing of it", "begin another one", 0)
	}
	return c, err
}

// holding serves a request about a session while that is this node's, and ends it with the life
// of the node.
func (n *Node) holding(w http.ResponseWriter, r *http.Request, h http.Handler, key messages.SessionKey) {
	if n.isDraining() && n.epochOf(key) == 0 {
		n.refuse(r.Context(), w, n.leaving())
		return
	}
	c, err := n.claimed(r.Context(), key)
	if err != nil {
		n.refuse(r.Context(), w, err)
		return
	}
	defer c.free()
	turn, err := c.own.Begin(r.Context(), fleet.Call{})
	if err != nil {
		n.refuse(r.Context(), w, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	n.show(w, r.WithContext(ctx), h, turn)
}

// Workspaces lists the workspaces of the other nodes, by the token that all nodes have. Of a
// node that gives no answer there are none.
func (n *Node) Workspaces(ctx context.Context, token string) []string {
	others := n.others()
	found := make([][]string, len(others))
	var asked sync.WaitGroup
	for i, p := range others {
		asked.Go(func() {
			status, a, err := n.page(ctx, http.Header{"Authorization": {"Bearer " + token}}, p, "/api/workspaces")
			var list struct{ Workspaces []struct{ Name string } }
			if err != nil || status != http.StatusOK || json.Unmarshal(a.Body, &list) != nil {
				return
			}
			for _, w := range list.Workspaces {
				found[i] = append(found[i], w.Name)
			}
		})
	}
	asked.Wait()
	return slices.Concat(found...)
}
