package fleetapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/messages"
)

// words is a protocol of others: /words/NAME makes a workspace, and /words/NAME/... is about it.
type words struct{}

func (words) Streams(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/inside") }

func (words) About(r *http.Request, body []byte) dialect.About {
	name, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/words/"), "/")
	switch {
	case name == "":
		return dialect.About{Merge: func(w http.ResponseWriter, pages []dialect.Page) {
			var all []string
			for _, p := range pages {
				all = append(all, strings.Fields(string(p.Body))...)
			}
			slices.Sort(all)
			_, _ = w.Write([]byte(strings.Join(all, " ")))
		}}
	case name == "kinds":
		return dialect.About{}
	case strings.HasPrefix(name, "any") && r.Method == http.MethodPost:
		return dialect.About{Near: "/words/there/" + name, Anywhere: name, Alike: true}
	case strings.HasPrefix(name, "any"):
		return dialect.About{Near: "/words/there/" + name, Holds: messages.SessionKey{Session: name, Cwd: "/w"}}
	case what == "" && r.Method == http.MethodPost:
		a := dialect.About{Workspace: name, Makes: true}
		if kind := string(body); kind != "" {
			a.Near = "/words/kinds/" + kind
		}
		return a
	default:
		a := dialect.About{Workspace: name, Begins: r.Method == http.MethodPost}
		if what == "fork" {
			a.Made = func(answer []byte) (keys []messages.SessionKey) {
				for name := range strings.FieldsSeq(string(answer)) {
					keys = append(keys, about.WorkspaceKey(name))
				}
				return keys
			}
		}
		return a
	}
}

func (words) Refuse(w http.ResponseWriter, _ *http.Request, no *httpserver.Refusal) {
	no.SayWhen(w)
	w.WriteHeader(no.Status)
	_, _ = w.Write([]byte("no: " + no.Code))
}

// speak serves the words, by the workspaces of the counters.
func (s *server) speak(w http.ResponseWriter, r *http.Request) {
	name, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/words/"), "/")
	if strings.HasPrefix(name, "any") && r.Method == http.MethodPost {
		key := messages.SessionKey{Session: name, Cwd: "/w"}
		done, err := s.node.Own(r.Context(), key)
		if no, ok := errors.AsType[*httpserver.Refusal](err); ok {
			words{}.Refuse(w, r, no)
			return
		}
		defer done()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sessions[key]++
		_, _ = fmt.Fprint(w, s.sessions[key], " at ", s.host)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case name == "there" && s.sessions[messages.SessionKey{Session: what, Cwd: "/w"}] == 0:
		http.NotFound(w, r)
	case name == "there":
	case strings.HasPrefix(name, "any") && s.sessions[messages.SessionKey{Session: name, Cwd: "/w"}] == 0:
		http.NotFound(w, r)
	case strings.HasPrefix(name, "any"):
		_, _ = w.Write([]byte("held at " + s.host))
	case name == "":
		for key := range s.sessions {
			_, _ = w.Write([]byte(key.Workspace + " "))
		}
	case name == "kinds" && what+".test" == s.host:
	case name == "kinds":
		http.NotFound(w, r)
	case what == "" && r.Method == http.MethodPost:
		if kind, _ := io.ReadAll(r.Body); len(kind) > 0 && string(kind)+".test" != s.host {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		s.sessions[about.WorkspaceKey(name)] = 1
		w.WriteHeader(http.StatusCreated)
	case s.sessions[about.WorkspaceKey(name)] == 0:
		http.NotFound(w, r)
	case what == "fork":
		s.sessions[about.WorkspaceKey(name+"2")] = 1
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(name + "2"))
	default:
		between := s.between
		s.between = nil
		if what == "late/inside" {
			s.wait(between)
		}
		_, _ = w.Write([]byte("at " + s.host))
		if what == "inside" {
			s.wait(between)
			_, _ = w.Write([]byte(" still"))
		}
	}
}

// wait lets others go on while it does something; s.mu is held.
func (s *server) wait(do func()) {
	if do != nil {
		s.mu.Unlock()
		do()
		s.mu.Lock()
	}
}

// TestADialect: what is about a workspace is served where that is, in whatever words; one is made at
// the node that has what it is made of; lists are those of all nodes; and no is said as it is said
// there.
func TestADialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer b.leave()
		defer a.leave()
		require.Equal(t, http.StatusCreated, a.ask(http.MethodPost, "/words/one", "", 0).Code)
		require.Equal(t, "at a.test still", b.ask(http.MethodGet, "/words/one/inside", "", 0).Body.String())
		require.Equal(t, http.StatusNotFound, b.ask(http.MethodGet, "/words/none/inside", "", 0).Code)
		require.Equal(t, http.StatusCreated, a.ask(http.MethodPost, "/words/two", "b", 0).Code)
		require.Equal(t, "at b.test still", a.ask(http.MethodGet, "/words/two/inside", "", 0).Body.String(), "it was made where its kind is")
		require.Equal(t, http.StatusTeapot, b.ask(http.MethodPost, "/words/three", "c", 0).Code, "no node has the kind: the one that was asked says so")
		require.Equal(t, http.StatusCreated, a.ask(http.MethodPost, "/words/two/fork", "", 0).Code)
		require.Equal(t, "at b.test still", a.ask(http.MethodGet, "/words/two2/inside", "", 0).Body.String(), "what was made besides is claimed")
		require.Equal(t, "one two two2", a.ask(http.MethodGet, "/words/", "", 0).Body.String())
		require.Equal(t, []string{"b.test"}, hosts(a.node.others()))

		a.kill()
		rec := b.ask(http.MethodPost, "/words/one/inside", "", 0)
		require.Equal(t, http.StatusNotFound, rec.Code, "it is gone with its node: %s", rec.Body)
		require.Equal(t, "two two2", b.ask(http.MethodGet, "/words/", "", 0).Body.String())
		b.node.mu.Lock()
		b.node.draining = true
		b.node.mu.Unlock()
		rec = b.ask(http.MethodPost, "/words/two/inside", "", 0)
		require.Equal(t, http.StatusServiceUnavailable, rec.Code)
		require.Equal(t, "no: draining", rec.Body.String(), "in its own words")
		require.NotEmpty(t, rec.Result().Header.Get("Retry-After"))
		require.Equal(t, "at b.test still", b.ask(http.MethodGet, "/words/two/inside", "", 0).Body.String(), "it begins nothing")
	})
}

// TestWhatBeginsAnywhere begins at one node, whichever is asked, and is served there from then on; a
// front has nothing, and a node that is draining begins nothing.
func TestWhatBeginsAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b, front := join(t, m, w, "a"), join(t, m, w, "b"), joinAs(t, m, w, "front", nil, true)
		defer front.leave()
		defer b.leave()
		defer a.leave()
		at := map[string]int{}
		for i := range 20 {
			name := fmt.Sprint("any", i)
			first := front.ask(http.MethodPost, "/words/"+name, "", 0).Body.String()
			count, node, _ := strings.Cut(first, " at ")
			require.Equal(t, "1", count, first)
			at[node]++
			for j, n := range []*server{a, b, front} {
				require.Equal(t, fmt.Sprint(j+2, " at ", node), n.ask(http.MethodPost, "/words/"+name, "", 0).Body.String())
				require.Equal(t, "held at "+node, n.ask(http.MethodGet, "/words/"+name, "", 0).Body.String())
			}
		}
		require.Len(t, at, 2, "%v", at)
		require.Equal(t, 20, a.node.owned()+b.node.owned(), "each is claimed")
		require.Equal(t, http.StatusNotFound, front.ask(http.MethodGet, "/words/any99", "", 0).Code)
		require.Equal(t, "no: no_sessions", front.ask(http.MethodPost, "/words/any99", "", 0, HeaderNode, front.node.ID()).Body.String())

		for _, n := range []*server{a, b} {
			n.node.mu.Lock()
			n.node.draining = true
			n.node.mu.Unlock()
		}
		require.Equal(t, "no: draining", a.ask(http.MethodPost, "/words/any99", "", 0, HeaderNode, a.node.ID()).Body.String())
	})
}

func hosts(peers []*peer) (list []string) {
	for _, p := range peers {
		list = append(list, strings.TrimPrefix(p.URL, "http://"))
	}
	return list
}

// TestWhatIsStreamedByAnOwnerThatIsOver is cut off, and told as lost where nothing of it has left.
func TestWhatIsStreamedByAnOwnerThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer b.leave()
		defer a.leave()
		over := func() { // the node is declared dead, and hears of it
			a.link.Cut()
			time.Sleep(3 * ttl)
			a.link.Mend()
			time.Sleep(ttl)
		}
		meanwhile := func(do func()) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.between = do
		}
		require.Equal(t, http.StatusCreated, a.ask(http.MethodPost, "/words/one", "", 0).Code)
		meanwhile(func() { time.Sleep(time.Second) })
		require.Equal(t, "at a.test still", a.ask(http.MethodGet, "/words/one/inside", "", 0).Body.String())
		meanwhile(over)
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { a.ask(http.MethodGet, "/words/one/inside", "", 0) })
		time.Sleep(ttl)

		require.Equal(t, http.StatusCreated, a.ask(http.MethodPost, "/words/two", "", 0).Code, "in its next life")
		meanwhile(over)
		rec := a.ask(http.MethodGet, "/words/two/late/inside", "", 0)
		require.Equal(t, http.StatusGone, rec.Code)
		require.Equal(t, "no: lost", rec.Body.String())
		time.Sleep(ttl)
	})
}
