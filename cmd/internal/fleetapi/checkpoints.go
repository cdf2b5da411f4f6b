package fleetapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
	"github.com/coppice-run/coppice/messages"
)

// checkpointKey is the key of who writes a checkpoint that all nodes have. No session has it, as
// each has a name.
func checkpointKey(name string) messages.SessionKey { return messages.SessionKey{Cwd: name} }

// isWriting reports whether a key is that of who writes a checkpoint, which is no session.
func isWriting(id string) bool {
	key, ok := messages.ParseSessionKey(id)
	return ok && key.Session == "" && key.Workspace == ""
}

// saves has a checkpoint made at the node of its session, and those of one name one by one: which
// one is there is looked at before it is written.
func (n *Node) saves(h http.Handler) http.Handler {
	return n.Pathed(about.Target{Claims: true})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body) // it was read before
		r.Body = io.NopCloser(bytes.NewReader(data))
		var in struct{ Name string }
		if err == nil && json.Unmarshal(data, &in) == nil && r.URL.Query().Get("workspace") == "" {
			n.alone(w, r, h, in.Name)
			return
		}
		h.ServeHTTP(w, r) // it says what is wrong with it
	}))
}

// dropsSaved has a checkpoint dropped, of a workspace where that is.
func (n *Node) dropsSaved(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := r.URL.Query().Get("workspace"); name != "" {
			n.route(w, r, h, about.Target{Key: about.WorkspaceKey(name), Body: []byte{}})
			return
		}
		n.alone(w, r, h, r.PathValue("name"))
	})
}

// alone serves a request about a checkpoint that all nodes have while no other node serves one.
func (n *Node) alone(w http.ResponseWriter, r *http.Request, h http.Handler, name string) {
	if n.o.Records == nil || name == "" {
		h.ServeHTTP(w, r)
		return
	}
	for wait := firstPause; ; {
		ctx, cancel := context.WithTimeout(r.Context(), n.o.TTL/2)
		c, err := n.take(ctx, checkpointKey(name))
		cancel()
		if _, taken := errors.AsType[*fleet.OwnedError](err); taken && pause.Wait(r.Context(), &wait) {
			continue // it is given up as soon as it is not used
		}
		if err == nil {
			defer c.free()
			_, err = c.own.Begin(r.Context(), fleet.Call{})
		}
		if err != nil {
			n.refuse(r.Context(), w, err)
			return
		}
		h.ServeHTTP(w, r)
		return
	}
}

// wherever has a request served by the node that knows what it is about: whoever does not answers
// that there is none.
func (n *Node) wherever(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held := newBuffer()
		held.serve(h, r)
		if held.status != http.StatusNotFound || r.Header.Get(HeaderNode) != "" {
			held.to(w)
			return
		}
		var silent error
		for _, p := range n.others() {
			state, err := n.forward(w, hinted(r), p, []byte{}, false)
			switch {
			case state == relay.Answered:
				return
			case errors.Is(err, errNotThere):
			case state == relay.Unknown:
				n.refuse(r.Context(), w, n.unanswered(r, p, state, err))
				return
			default:
				silent = n.away(p.ID, err)
			}
		}
		if silent != nil {
			n.refuse(r.Context(), w, silent)
			return
		}
		held.to(w)
	})
}
