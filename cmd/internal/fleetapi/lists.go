package fleetapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/together"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
	"github.com/coppice-run/coppice/messages"
)

// merged is a list of what there is at all nodes, in the member of an answer; each entry
// says at which. Nodes that gave no answer are named.
func (n *Node) merged(member string) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			held, me := newBuffer(), n.ID()
			held.serve(h, r)
			all := []json.RawMessage{}
			if held.status != http.StatusOK {
				held.to(w)
				return
			}
			all = append(all, together.Entries(held.body.Bytes(), member, me, true)...)
			out := map[string]any{}
			if r.Header.Get(HeaderNode) == "" {
				others := n.others()
				answers := make([][]json.RawMessage, len(others))
				heard := make([]bool, len(others))
				var asked sync.WaitGroup
				for i, p := range others {
					asked.Go(func() {
						status, data, err := n.ask(r.Context(), r, p, r.URL.RequestURI())
						if heard[i] = err == nil && status == http.StatusOK; heard[i] {
							answers[i] = together.Entries(data, member, p.ID, true)
						}
					})
				}
				asked.Wait()
				var silent []string
				for i, p := range others {
					all = append(all, answers[i]...)
					if !heard[i] {
						silent = append(silent, p.ID)
					}
				}
				if len(silent) > 0 {
					out["unreachable"] = silent
				}
			}
			if n.o.Records != nil {
				all = together.Once(all)
			}
			out[member] = all
			httpserver.Answer(w, r, http.StatusOK, out)
		})
	}
}

// byID has a request about an execution served where that is.
func (n *Node) byID(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		execution := r.PathValue("id")
		if n.o.Knows(execution) {
			h.ServeHTTP(w, r)
			return
		}
		id, hint := "", false
		if r.Header.Get(HeaderNode) == "" { // else this node is asked for what it has
			id = n.placeOf(execution)
			hint = id != ""
			var err error
			if !hint {
				id, err = n.seek(r, execution)
			}
			if err != nil {
				n.refuse(r.Context(), w, err)
				return
			}
		}
		if id == "" {
			n.nowhere(w, r, h, execution)
			return
		}
		n.place(execution, id)
		body, err := io.ReadAll(io.LimitReader(r.Body, about.MaxBody)) // once more for each attempt
		if err != nil {
			n.refuse(r.Context(), w, Refusal(http.StatusBadRequest, "bad_request", "the body cannot be read: "+err.Error(), "", 0))
			return
		}
		for wait, tries := firstPause, time.Now(); ; {
			p := n.peer(id)
			if p == nil || p.URL == n.url {
				n.refuse(r.Context(), w, Lost("the execution "+execution, id))
				return
			}
			w.Header().Del(HeaderNode)
			to := r
			if hint {
				to = hinted(r)
			}
			state, err := n.forward(w, to, p, body, false)
			switch {
			case state == relay.Answered:
				return
			case errors.Is(err, errNotThere): // it was begun elsewhere since, or is forgotten
				hint = false
				if id, err = n.seek(r, execution); err != nil {
					n.refuse(r.Context(), w, err)
					return
				}
				if id == "" {
					n.nowhere(w, r, h, execution)
					return
				}
				n.place(execution, id)
			case state == relay.Unknown && r.Method != http.MethodGet:
				n.refuse(r.Context(), w, n.unanswered(r, p, state, err))
				return
			case time.Since(tries) > 2*n.o.TTL || !pause.Wait(r.Context(), &wait):
				n.refuse(r.Context(), w, n.away(id, err))
				return
			}
		}
	})
}

// nowhere answers about an execution that no node knows.
func (n *Node) nowhere(w http.ResponseWriter, r *http.Request, h http.Handler, execution string) {
	if err := n.passed(r, execution); err != nil {
		n.refuse(r.Context(), w, err)
		return
	}
	h.ServeHTTP(w, r) // it says that there is none
}

// passed is the refusal for an execution that no node knows, and that was begun in an epoch
// which is over: the query of its request says in which, as the Location of an execution
// does. nil: it was not, or the query does not say so.
func (n *Node) passed(r *http.Request, execution string) error {
	query := r.URL.Query()
	epoch, err := strconv.ParseUint(query.Get("epoch"), 10, 64)
	if err != nil || query.Get("session") == "" {
		return nil
	}
	m, _ := n.now()
	if m == nil {
		return fleet.ErrSuspended
	}
	ctx, cancel := context.WithTimeout(r.Context(), n.o.TTL/2)
	defer cancel()
	key := n.SessionKey(query.Get("session"), query.Get("cwd"), query.Get("kernel"))
	owner, now, err := m.Owner(ctx, key.ID())
	switch {
	case err != nil:
		return err
	case owner != "" && now <= epoch:
		return nil // its node has said that there is none
	}
	return Refusal(http.StatusGone, "lost",
		fmt.Sprintf("the execution %s is lost: no node knows it, and the epoch %d of its session is over", execution, epoch), "the next call of the session begins with nothing in memory", 0)
}

// seek asks all nodes for an execution, and returns the one that knows it: "" when all say
// that they do not.
func (n *Node) seek(r *http.Request, execution string) (string, error) {
	others := n.others()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	type answer struct {
		id    string
		found bool
		err   error
	}
	answers := make(chan answer, len(others))
	for _, p := range others {
		go func() { // ends with ctx; the channel has room for all
			status, _, err := n.ask(ctx, r, p, "/api/executions/"+execution)
			if err == nil && status != http.StatusOK && status != http.StatusNotFound {
				err = fmt.Errorf("it answers with status %d", status)
			}
			answers <- answer{p.ID, err == nil && status == http.StatusOK, err}
		}()
	}
	var silent error
	for range others {
		a := <-answers
		if a.found {
			return a.id, nil
		}
		if a.err != nil {
			silent = n.away(a.id, a.err)
		}
	}
	return "", silent
}

// whole has a GET answered with what all nodes say of themselves. ask is what the others are
// asked, once own is what this one has said. A request that names a node is answered by it alone.
func (n *Node) whole(ask func(own []byte) string, merge func(me string, own []byte, others map[string][]byte) (any, error)) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			held := newBuffer()
			held.serve(h, r)
			if r.Header.Get(HeaderNode) != "" || held.status != http.StatusOK {
				held.to(w)
				return
			}
			question, others := ask(held.body.Bytes()), n.others()
			answers := make([][]byte, len(others))
			var asked sync.WaitGroup
			for i, p := range others {
				asked.Go(func() {
					if status, data, err := n.ask(r.Context(), r, p, question); err == nil && status == http.StatusOK {
						answers[i] = data
					}
				})
			}
			asked.Wait()
			said := map[string][]byte{} // a node that says nothing has nil
			for i, p := range others {
				said[p.ID] = answers[i]
			}
			all, err := merge(n.ID(), held.body.Bytes(), said)
			if err != nil { // it is that of a node of another version
				held.to(w)
				return
			}
			httpserver.Answer(w, r, http.StatusOK, all)
		})
	}
}

// tree is that of the fleet.
func (n *Node) tree() func(http.Handler) http.Handler {
	return n.whole(func([]byte) string { return "/api/tree" }, together.Tree)
}

// overview is that of the fleet: samples have the numbers of this node.
func (n *Node) overview() func(http.Handler) http.Handler {
	return n.whole(func(own []byte) string {
		return "/api/overview?" + url.Values{"since": {together.Since(own).Format(time.RFC3339Nano)}}.Encode()
	}, together.Overview)
}

// story is about the session that the query of a request names.
func (n *Node) story(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("session") == "" || !messages.IsKernelspec(query.Get("kernel")) {
			h.ServeHTTP(w, r) // which says what is wrong with it
			return
		}
		t := about.Target{Key: n.SessionKey(query.Get("session"), query.Get("cwd"), query.Get("kernel")), Body: []byte{}}
		if name := query.Get("workspace"); name != "" {
			t.Key = about.WorkspaceKey(name)
		}
		n.route(w, r, h, t)
	})
}
