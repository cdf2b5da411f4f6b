package fleetapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// HeaderUnreachable names, in a merged answer of a dialect, the nodes that gave none.
const HeaderUnreachable = "Coppice-Unreachable"

// in has requests in a dialect go to the node that they belong to.
func (n *Node) in(d dialect.Dialect, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), refusing{}, func(w http.ResponseWriter, no *httpserver.Refusal) { d.Refuse(w, r, no) }))
		t := target{streams: d.Streams(r)}
		if !t.streams {
			data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(data), &failing{err, r.Body}), r.Body}
			if err != nil || len(data) > maxBody {
				h.ServeHTTP(w, r) // which says what is wrong with it
				return
			}
			t.body = data
		}
		a := d.About(r, t.body)
		switch {
		case a.Merge != nil:
			n.mergePages(w, r, h, a.Merge)
			return
		case a.Near != "":
			here, done := n.near(w, r, h, a.Near, t.body)
			if done {
				return
			}
			if !here {
				a.Workspace = "" // this node says that there is none
			}
			r.Header.Set(HeaderNode, n.ID()) // what is made of it begins here
		}
		if a.Workspace == "" {
			h.ServeHTTP(w, r)
			return
		}
		t.key, t.claims, t.once, t.begins = workspaceKey(a.Workspace), a.Makes, a.Makes, a.Begins
		if a.Made != nil {
			t.made = func(answer []byte) (keys []messages.SessionKey, _ error) {
				for _, name := range a.Made(answer) {
					keys = append(keys, workspaceKey(name))
				}
				return keys, nil
			}
		}
		n.route(w, r, h, t)
	})
}

// refusing is the key under which a context has how its request is refused.
type refusing struct{}

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
	ask := r.Clone(r.Context())
	ask.Method, ask.Body, ask.ContentLength = http.MethodGet, http.NoBody, 0
	ask.URL.Path, ask.URL.RawPath, ask.URL.RawQuery = question, "", ""
	held := newBuffer()
	held.serve(h, ask)
	if r.Header.Get(HeaderNode) != "" || held.status == http.StatusOK {
		return held.status == http.StatusOK, false
	}
	for _, p := range n.others() {
		status, _, err := n.page(r.Context(), r.Header, p, ask.URL.EscapedPath())
		if err != nil {
			n.refuse(r.Context(), w, n.away(p.ID, err))
			return false, true
		}
		if status != http.StatusOK {
			continue
		}
		if state, err := n.forward(w, r, p, body, false); state != answered {
			n.refuse(r.Context(), w, n.unanswered(r, p, state, err))
		}
		return false, true
	}
	return false, false
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
	var all []string
	for _, names := range found {
		all = append(all, names...)
	}
	return all
}
