package fleetapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 10 * time.Second

// wires carry requests between nodes of one process, by the host of their URL.
type wires struct {
	mu    sync.Mutex
	nodes map[string]http.Handler // guarded by mu
	// deaf are hosts that take requests and give no answer; guarded by mu.
	deaf map[string]bool
}

// RoundTrip implements [http.RoundTripper].
func (w *wires) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	h, deaf := w.nodes[r.URL.Host], w.deaf[r.URL.Host]
	w.mu.Unlock()
	if deaf {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if h == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	if r.Body == nil { // as a server has it
		r.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// server is a node whose sessions are counters.
type server struct {
	t     *testing.T
	node  *Node
	link  *fleettest.Link
	h     http.Handler
	wires *wires
	host  string
	// records is where the counters are kept on disk; nil: none are.
	records *Records

	mu       sync.Mutex
	sessions map[messages.SessionKey]int // guarded by mu
	known    map[string]string           // executions, with what they came to; guarded by mu
	ended    int                         // how many sessions were ended from outside; guarded by mu
	news     []string                    // of the executions that had their place; guarded by mu
	full     bool                        // no execution has one; guarded by mu
	stays    error                       // why no session can be ended; nil: they can; guarded by mu
	// between is called between the end of a cell and its answer; guarded by mu.
	between func()
	changed func(ended messages.SessionKey, why string)
}

// join makes a node and has it join.
func join(t *testing.T, m *fleettest.Memory, w *wires, name string) *server {
	t.Helper()
	return joinKeeping(t, m, w, name, nil)
}

// joinKeeping is join for a node that keeps its sessions in a store, unless it is nil.
func joinKeeping(t *testing.T, m *fleettest.Memory, w *wires, name string, kept store.Store) *server {
	t.Helper()
	return joinAs(t, m, w, name, kept, false)
}

// joinLabelled is join for a node with labels.
func joinLabelled(t *testing.T, m *fleettest.Memory, w *wires, name string, labels map[string]string) *server {
	t.Helper()
	return joinWith(t, m, w, name, nil, func(o *Options) { o.Labels = labels })
}

// joinAs is joinKeeping for a node that is a front.
func joinAs(t *testing.T, m *fleettest.Memory, w *wires, name string, kept store.Store, front bool) *server {
	t.Helper()
	return joinWith(t, m, w, name, kept, func(o *Options) { o.Front = front })
}

// joinWith is joinKeeping for a node with other options.
func joinWith(t *testing.T, m *fleettest.Memory, w *wires, name string, kept store.Store, change func(*Options)) *server {
	t.Helper()
	s := &server{t: t, link: fleettest.NewLink(m), wires: w, host: name + ".test", sessions: map[messages.SessionKey]int{}, known: map[string]string{}}
	began := time.Now()
	o := Options{
		Directory: s.link, Name: name, TTL: ttl, Cwd: "/w", Sessions: s, Knows: s.knows, Transport: w,
		Kernel: usual, Clock: func() time.Duration { return time.Since(began) },
	}
	if kept != nil {
		s.records = NewRecords(kept, folder(t, t.TempDir()))
		o.Records, o.Hibernate = s.records, s.sleep
	}
	change(&o)
	s.node = New(o)
	mux := http.NewServeMux()
	for _, mount := range s.node.Wrap([]httpserver.Mount{
		{Pattern: "POST /api/executions", Handler: http.HandlerFunc(s.execute)},
		{Pattern: "GET /api/executions/{id}", Handler: http.HandlerFunc(s.show)},
		{Pattern: "GET /api/sessions", Handler: http.HandlerFunc(s.list)},
		{Pattern: "DELETE /api/sessions/{session}", Handler: http.HandlerFunc(s.remove)},
		{Pattern: "DELETE /api/checkpoints/{id}", Handler: http.HandlerFunc(s.forget)},
		{Pattern: "POST /api/sessions/{session}/fork", Handler: http.HandlerFunc(s.fork)},
		{Pattern: "POST /api/workspaces", Handler: http.HandlerFunc(s.makeWorkspace)},
		{Pattern: "PUT /api/workspaces/{workspace}/files", Handler: http.HandlerFunc(s.inWorkspace)},
		{Pattern: "DELETE /api/workspaces/{workspace}", Handler: http.HandlerFunc(s.endWorkspace)},
		s.node.Speak(words{}, httpserver.Mount{Pattern: "/words/", Handler: http.HandlerFunc(s.speak)}),
		{Pattern: "GET /api/tools/", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "tools of "+name) })},
	}) {
		mux.Handle(mount.Pattern, mount.Handler)
	}
	s.h = mux
	w.mu.Lock()
	w.nodes[s.host] = mux
	w.mu.Unlock()
	require.NoError(t, s.node.Join(t.Context(), "http://"+s.host))
	synctest.Wait()
	return s
}

func newWires() *wires { return &wires{nodes: map[string]http.Handler{}, deaf: map[string]bool{}} }

// usual is the name that a kernelspec has in keys.
func usual(kernel string) string {
	if kernel == "python3" {
		return ""
	}
	return kernel
}

// leave ends a node, and kill has it be silent from now on.
func (s *server) leave() {
	s.link.Mend()
	require.NoError(s.t, s.node.Close(context.WithoutCancel(s.t.Context())))
	require.NoError(s.t, s.link.Close())
}

func (s *server) kill() {
	s.link.Cut()
	s.wires.mu.Lock()
	delete(s.wires.nodes, s.host)
	s.wires.mu.Unlock()
}

// Live implements Sessions.
func (s *server) Live(context.Context) ([]messages.SessionKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []messages.SessionKey
	for key := range s.sessions {
		keys = append(keys, key)
	}
	return keys, nil
}

// End implements Sessions.
func (s *server) End(_ context.Context, key messages.SessionKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stays != nil {
		return s.stays
	}
	delete(s.sessions, key)
	s.ended++
	return nil
}

// Watch implements Sessions.
func (s *server) Watch(f func(messages.SessionKey, string)) func() {
	s.changed = f
	return func() {}
}

func (s *server) knows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[id] != ""
}

// execute counts in a session, in the way of package httpapi: the turn is asked for before,
// and for the answer.
func (s *server) execute(w http.ResponseWriter, r *http.Request) {
	var in struct{ ID, Session, Kernel string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		s.t.Error(err)
		return
	}
	s.mu.Lock()
	told := s.known[in.ID]
	s.mu.Unlock()
	if told != "" {
		_, _ = fmt.Fprint(w, told)
		return
	}
	turn, err := httpapi.Entered(r.Context())(r.Context(), in.ID)
	if no, ok := errors.AsType[*httpserver.Refusal](err); ok {
		no.Answer(w)
		return
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	defer turn.End()
	news := turn.News()
	s.mu.Lock()
	full := s.full
	s.mu.Unlock()
	if full {
		httpserver.Error(w, http.StatusServiceUnavailable, "overloaded", "too many wait", "")
		return
	}
	turn.Begun()
	key := messages.SessionKey{Session: in.Session, Cwd: "/w", Kernel: usual(in.Kernel)}
	s.mu.Lock()
	_, lives := s.sessions[key]
	s.mu.Unlock()
	if !lives && s.records != nil {
		kept, err := s.wake(r.Context(), key)
		if err != nil {
			httpserver.Error(w, http.StatusInternalServerError, "not_restored", err.Error(), "")
			return
		}
		s.mu.Lock()
		s.sessions[key] = kept
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.news = append(s.news, news)
	s.sessions[key]++
	told = strconv.Itoa(s.sessions[key])
	between := s.between
	s.between = nil
	s.mu.Unlock()
	if between != nil {
		between()
	}
	if err := turn.Answer(r.Context()); err != nil {
		told = "lost"
	}
	s.mu.Lock()
	s.known[in.ID] = told
	s.mu.Unlock()
	_, _ = fmt.Fprint(w, told)
}

func (s *server) show(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	told := s.known[r.PathValue("id")]
	s.mu.Unlock()
	if told == "" {
		httpserver.Error(w, http.StatusNotFound, "not_found", "there is none", "")
		return
	}
	_, _ = fmt.Fprint(w, told)
}

// forget takes an execution for a checkpoint, and drops it.
func (s *server) forget(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	_, there := s.known[r.PathValue("id")]
	delete(s.known, r.PathValue("id"))
	s.mu.Unlock()
	if !there {
		httpserver.Error(w, http.StatusNotFound, "not_found", "there is none", "")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	keys, _ := s.Live(r.Context())
	httpserver.Answer(w, r, http.StatusOK, map[string]any{"sessions": keys})
}

func (s *server) remove(w http.ResponseWriter, r *http.Request) {
	if s.records != nil {
		if err := s.records.Delete(r.Context(), messages.SessionKey{Session: r.PathValue("session"), Cwd: "/w"}.ID()); err != nil {
			s.t.Error(err)
		}
	}
	s.end(r.PathValue("session"), "the session was closed")
	w.WriteHeader(http.StatusNoContent)
}

// end ends a session for a reason.
func (s *server) end(session, why string) {
	key := messages.SessionKey{Session: session, Cwd: "/w"}
	s.mu.Lock()
	delete(s.sessions, key)
	s.mu.Unlock()
	s.changed(key, why)
}

func (s *server) fork(w http.ResponseWriter, r *http.Request) {
	key := messages.SessionKey{Session: r.PathValue("session") + "~1", Cwd: "/w"}
	s.mu.Lock()
	s.sessions[key] = 7
	s.mu.Unlock()
	httpserver.JSON(w, http.StatusCreated, map[string]any{"sessions": []messages.SessionKey{key}})
}

// ask makes a request of a node; epoch 0: none is named.
func (s *server) ask(method, path, body string, epoch int, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(s.t.Context(), method, "http://"+s.host+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer sesame")
	if epoch > 0 {
		r.Header.Set(HeaderEpoch, strconv.Itoa(epoch))
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return serveTo(s.h, r)
}

func serveTo(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// run counts once in a session.
func (s *server) run(id, session string, epoch int) *httptest.ResponseRecorder {
	return s.ask(http.MethodPost, "/api/executions", fmt.Sprintf(`{"id":%q,"session":%q}`, id, session), epoch)
}

// code is that of an answer that says no.
func code(rec *httptest.ResponseRecorder) string {
	var p struct{ Error struct{ Code string } }
	_ = json.Unmarshal(rec.Body.Bytes(), &p)
	return p.Error.Code
}
