package fleetapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/coppice-run/coppice/fleet"
)

// inWorkspace has a request about a workspace served where that is. What it sends and gets is
// streamed: it is not read ahead.
func (n *Node) inWorkspace(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.route(w, r, h, target{key: workspaceKey(r.PathValue("workspace")), streams: true})
	})
}

// makesWorkspace has a workspace made where one of its name is, or is to begin.
func (n *Node) makesWorkspace(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(data), &failing{err, r.Body}), r.Body}
		var in struct{ Name string }
		if err != nil || len(data) > maxBody || json.Unmarshal(data, &in) != nil || in.Name == "" {
			h.ServeHTTP(w, r) // which says what is wrong with it
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		n.route(w, r, h, target{key: workspaceKey(in.Name), claims: true, body: data})
	})
}

// stream serves a request about a workspace that this node has. The lease is looked at before
// it; what is streamed cannot be held back for a second look.
func (n *Node) stream(w http.ResponseWriter, r *http.Request, h http.Handler, c *claim) {
	if n.isDraining() && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/processes") {
		n.refuse(r.Context(), w, n.ending())
		return
	}
	if _, err := c.own.Begin(r.Context(), fleet.Call{}); err != nil {
		n.refuse(r.Context(), w, err)
		return
	}
	h.ServeHTTP(w, r)
}

// spent reports whether a request that was sent on cannot be sent again: its body may be gone.
func (t target) spent(r *http.Request, failed error) bool {
	return t.streams && r.ContentLength != 0 && (errors.Is(failed, errMoved) || errors.Is(failed, errOther))
}
