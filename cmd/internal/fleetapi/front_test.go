package fleetapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
)

// rooms are sandboxes in memory, whose servers are counters.
type rooms struct {
	wires *wires

	mu    sync.Mutex
	n     int
	of    map[string]*aRoom // by key; guarded by mu
	fails error             // of each claim that is to be made; guarded by mu
	blind error             // of each Confirm; guarded by mu
	ended []string          // guarded by mu
}

// aRoom is one. Its server's fields are the rooms' mutex's.
type aRoom struct {
	of *rooms
	fleet.Sandbox
	over    context.CancelFunc
	life    string // of who answers there
	counted int
	got     []*http.Request
	// between is called between what is done and its answer.
	between func()
	breaks  bool // the next answer does not come
	shut    bool // it lets nobody in
}

func newRooms() *rooms { return &rooms{wires: newWires(), of: map[string]*aRoom{}} }

// Claim implements [fleet.Sandboxes].
func (r *rooms) Claim(ctx context.Context, key string) (fleet.Sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.of[key]; one != nil {
		return one.Sandbox, nil
	}
	if r.fails != nil {
		return fleet.Sandbox{}, r.fails
	}
	return r.makeLocked(key, 0), ctx.Err()
}

func (r *rooms) makeLocked(key string, before uint64) fleet.Sandbox {
	r.n++
	one := &aRoom{of: r}
	one.Sandbox = fleet.Sandbox{
		Key: key, Name: "room", UID: fmt.Sprint("uid-", r.n), Server: fmt.Sprint("life-", r.n), URL: fmt.Sprintf("http://room-%d.test", r.n),
		Epoch: uint64(10 * r.n), Before: before, //nolint:gosec // it is small
	}
	one.life = one.Server
	one.Over, one.over = context.WithCancel(context.Background())
	r.of[key] = one
	r.wires.mu.Lock()
	r.wires.nodes[strings.TrimPrefix(one.URL, "http://")] = one
	r.wires.mu.Unlock()
	return one.Sandbox
}

// replace has another one be that of a key.
func (r *rooms) replace(key string, before uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[key].over()
	r.makeLocked(key, before)
}

func (r *rooms) room(key string) *aRoom {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[key]
}

// Find implements [fleet.Sandboxes].
func (r *rooms) Find(_ context.Context, key string) (fleet.Sandbox, error) {
	if one := r.room(key); one != nil {
		return one.Sandbox, nil
	}
	return fleet.Sandbox{}, fleet.ErrNoSandbox
}

// Confirm implements [fleet.Sandboxes].
func (r *rooms) Confirm(_ context.Context, s fleet.Sandbox) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blind != nil {
		return r.blind
	}
	if one := r.of[s.Key]; one == nil || one.UID != s.UID {
		return fleet.ErrLost
	}
	return nil
}

// Renew implements [fleet.Sandboxes].
func (r *rooms) Renew(context.Context, fleet.Sandbox) error { return nil }

// End implements [fleet.Sandboxes].
func (r *rooms) End(_ context.Context, key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.of[key]
	if one == nil {
		return fleet.ErrNoSandbox
	}
	one.over()
	delete(r.of, key)
	r.ended = append(r.ended, key)
	return nil
}

// List implements [fleet.Sandboxes].
func (r *rooms) List(context.Context) (all []fleet.Sandbox, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.of {
		all = append(all, one.Sandbox)
	}
	return all, r.blind
}

// Close implements [fleet.Sandboxes].
func (r *rooms) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.of {
		one.over()
	}
	return nil
}

// ServeHTTP counts.
func (one *aRoom) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one.of.mu.Lock()
	between, breaks, shut := one.between, one.breaks, one.shut
	one.between, one.breaks = nil, false
	w.Header().Set(httpserver.HeaderServer, one.life)
	if shut || r.Header.Get(httpserver.HeaderServer) != one.life {
		one.of.mu.Unlock()
		w.WriteHeader(map[bool]int{true: http.StatusUnauthorized, false: http.StatusGone}[shut])
		return
	}
	one.counted++
	one.got = append(one.got, r)
	counted := one.counted
	one.of.mu.Unlock()
	if between != nil {
		between()
	}
	if breaks {
		w.Header().Set("Breaks", "off")
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPost && r.URL.Path == "/api/executions" {
		w.Header().Set("Location", "/api/executions/x1")
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = fmt.Fprintf(w, `{"counted":%d,"sessions":[{"session":"s"}]}`, counted)
}

// RoundTrip implements [http.RoundTripper].
func (r *rooms) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.wires.RoundTrip(req)
	if err == nil && resp.Header.Get("Breaks") != "" {
		return nil, io.ErrUnexpectedEOF
	}
	return resp, err
}

// asks asks a front.
func asks(t *testing.T, f *Front, method, path, body string, epoch uint64) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	for _, m := range f.Mounts() {
		mux.Handle(m.Pattern, m.Handler)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "http://front.test"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer of-a-client")
	r.Header.Set("Cookie", "a=b")
	if epoch != 0 {
		r.Header.Set(HeaderEpoch, fmt.Sprint(epoch))
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

func newFront(r *rooms) *Front {
	return NewFront(FrontOptions{Sandboxes: r, Transport: r, Host: "sandbox.test", Token: "of-the-front", Patience: ttl})
}

// inSandbox is the key of the session s.
const inSandbox = "s@"

// TestFront: a request goes to the sandbox of its key, with what the front shows; who knows where an
// execution is asks any front for it; and what is in one is ended with it.
func TestFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooms()
		defer r.Close()
		f, other := newFront(r), newFront(r)
		begun := asks(t, f, http.MethodPost, "/api/executions", `{"id":"x1","session":"s"}`, 0)
		require.Equal(t, http.StatusCreated, begun.Code, begun.Body)
		require.Equal(t, "room", begun.Header().Get(HeaderNode))
		require.Equal(t, "10", begun.Header().Get(HeaderEpoch))
		require.Empty(t, begun.Header().Get(httpserver.HeaderServer))
		require.Equal(t, "/api/executions/x1?epoch=10&session=s", begun.Header().Get("Location"))
		got := r.room(inSandbox).got[0]
		require.Equal(t, "sandbox.test", got.Host)
		require.Equal(t, "Bearer of-the-front", got.Header.Get("Authorization"))
		require.Empty(t, got.Header.Get("Cookie"))
		require.Empty(t, got.Header.Get(HeaderEpoch))

		require.Equal(t, http.StatusOK, asks(t, f, http.MethodGet, "/api/executions/x1", "", 0).Code, "it knows where that is")
		require.Equal(t, http.StatusNotFound, asks(t, other, http.MethodGet, "/api/executions/x1", "", 0).Code)
		require.Equal(t, http.StatusOK, asks(t, other, http.MethodGet, begun.Header().Get("Location"), "", 0).Code)
		require.Equal(t, http.StatusGone, asks(t, other, http.MethodGet, "/api/executions/x1?epoch=9&session=s", "", 0).Code)
		require.Contains(t, asks(t, other, http.MethodGet, "/api/sessions", "", 0).Body.String(), `{"node":"room","session":"s"}`)

		made := asks(t, f, http.MethodPost, "/api/workspaces", `{"name":"w"}`, 0)
		require.Equal(t, "20", made.Header().Get(HeaderEpoch), "one of its own")
		in := asks(t, other, http.MethodPost, "/api/executions", `{"id":"x2","session":"s","workspace":"w"}`, 0)
		require.Equal(t, "20", in.Header().Get(HeaderEpoch))
		require.Contains(t, in.Header().Get("Location"), "workspace=w")
		require.Equal(t, http.StatusOK, asks(t, other, http.MethodPut, "/api/workspaces/w/files", "x", 0).Code)
		require.Equal(t, http.StatusConflict, asks(t, f, http.MethodDelete, "/api/workspaces/w", "", 9).Code)
		require.Equal(t, http.StatusNoContent, asks(t, f, http.MethodDelete, "/api/workspaces/w", "", 20).Code)
		require.Equal(t, http.StatusNoContent, asks(t, f, http.MethodDelete, "/api/sessions/s", "", 0).Code)
		require.Equal(t, http.StatusNotFound, asks(t, f, http.MethodDelete, "/api/sessions/s", "", 0).Code)
		require.Len(t, r.ended, 2)
	})
}

// TestFrontMakesNothing for what cannot be there, or cannot begin.
func TestFrontMakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooms()
		defer r.Close()
		f := newFront(r)
		for request, want := range map[[3]string]int{
			{http.MethodPost, "/api/executions", `{`}:                               http.StatusBadRequest,
			{http.MethodPost, "/api/executions", `{"session":"s","workspace":"w"}`}: http.StatusNotFound,
			{http.MethodPost, "/api/workspaces", `{"name":""}`}:                     http.StatusBadRequest,
			{http.MethodPost, "/api/workspaces", `{"name":"../w"}`}:                 http.StatusBadRequest,
			{http.MethodPost, "/api/sessions/s/fork", `{}`}:                         http.StatusBadRequest,
			{http.MethodPost, "/api/sessions/s/rewind", `{}`}:                       http.StatusNotFound,
			{http.MethodGet, "/api/sessions/s", ""}:                                 http.StatusNotFound,
			{http.MethodGet, "/api/workspaces/w", ""}:                               http.StatusNotFound,
			{http.MethodPost, "/api/notebooks/run", `{"session":"s"}`}:              http.StatusNotFound,
		} {
			require.Equal(t, want, asks(t, f, request[0], request[1], request[2], 0).Code, request)
		}
		for code, err := range map[string]error{
			"starting":   &fleet.SandboxError{Name: "room", Reason: "Pending", Err: context.DeadlineExceeded},
			"no_sandbox": &fleet.SandboxError{Name: "room", Reason: "TemplateNotFound"},
			"suspended":  errors.New("connection refused"),
		} {
			r.fails = fmt.Errorf("claim: %w", err)
			require.Contains(t, asks(t, f, http.MethodPost, "/api/executions", `{"session":"s"}`, 0).Body.String(), `"code":"`+code+`"`)
		}
		require.Zero(t, r.n)
	})
}

// TestFrontAndFence: what a sandbox has done whose claim is another's by then is lost, and its answer
// does not leave; who knows an epoch that is over is refused, and nothing is done twice.
func TestFrontAndFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooms()
		defer r.Close()
		f := newFront(r)
		const body = `{"id":"x1","session":"s"}`
		require.Equal(t, http.StatusCreated, asks(t, f, http.MethodPost, "/api/executions", body, 0).Code)
		first := r.room(inSandbox)
		first.between = func() { r.replace(inSandbox, first.Epoch) }
		lost := asks(t, f, http.MethodGet, "/api/sessions/s", "", 0)
		require.Equal(t, http.StatusGone, lost.Code)
		require.NotContains(t, lost.Body.String(), "counted")
		require.Equal(t, 2, first.counted, "it was done")

		gone := asks(t, f, http.MethodPost, "/api/executions", body, first.Epoch)
		require.Contains(t, gone.Body.String(), `"epoch_gone"`)
		require.Equal(t, "20", gone.Header().Get(HeaderEpoch))
		require.Contains(t, asks(t, f, http.MethodPost, "/api/executions", body, 0).Body.String(), `"epoch_needed"`)
		require.Equal(t, http.StatusOK, asks(t, f, http.MethodGet, "/api/sessions/s", "", 0).Code, "who only looks need not know")
		require.Equal(t, http.StatusCreated, asks(t, f, http.MethodPost, "/api/executions", body, 20).Code)

		second := r.room(inSandbox)
		second.breaks, second.between = true, func() { r.replace(inSandbox, 0) } // nobody knows of it any more
		require.Contains(t, asks(t, f, http.MethodPost, "/api/executions", body, 20).Body.String(), `"lost"`)
		require.Zero(t, r.room(inSandbox).counted, "it may have been done before")

		third := r.room(inSandbox)
		third.breaks = true
		require.Equal(t, http.StatusCreated, asks(t, f, http.MethodPost, "/api/executions", body, 0).Code, "the same server does it once")
		third.breaks = true
		require.Contains(t, asks(t, f, http.MethodPost, "/api/sessions/s/interrupt", "", 0).Body.String(), `"unanswered"`)
		third.life += "+"
		counted := third.counted
		require.Contains(t, asks(t, f, http.MethodPost, "/api/executions", body, 0).Body.String(), `"owner_away"`, "another answers there")
		require.Equal(t, counted, third.counted)
	})
}

// TestFrontKnowsNothing: while it is not known whose an answer is, it does not leave.
func TestFrontKnowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooms()
		defer r.Close()
		f := newFront(r)
		require.Equal(t, http.StatusCreated, asks(t, f, http.MethodPost, "/api/executions", `{"session":"s"}`, 0).Code)
		r.blind = errors.New("the API server is away")
		answer := asks(t, f, http.MethodPost, "/api/executions", `{"session":"s"}`, 0)
		require.Equal(t, http.StatusBadGateway, answer.Code)
		require.NotContains(t, answer.Body.String(), "counted")
		require.Equal(t, http.StatusServiceUnavailable, asks(t, f, http.MethodGet, "/api/sessions", "", 0).Code)
		go func() { // ends with the bubble's next second
			time.Sleep(time.Second)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.blind = nil
		}()
		require.Equal(t, http.StatusOK, asks(t, f, http.MethodGet, "/api/sessions/s", "", 0).Code, "it waits until it is known")
		r.room(inSandbox).shut = true
		require.Contains(t, asks(t, f, http.MethodGet, "/api/sessions/s", "", 0).Body.String(), `"no_sandbox"`)
		r.wires.mu.Lock()
		delete(r.wires.nodes, "room-1.test")
		r.wires.mu.Unlock()
		require.Contains(t, asks(t, f, http.MethodGet, "/api/sessions/s", "", 0).Body.String(), `"owner_away"`)
		require.Contains(t, asks(t, f, http.MethodGet, "/api/sessions", "", 0).Body.String(), `"unreachable":["room"]`)
	})
}

// TestFrontCutsStreams: what a sandbox streams is cut off, and not ended, once its key is another's.
func TestFrontCutsStreams(t *testing.T) {
	r := newRooms()
	defer r.Close()
	_, err := r.Claim(t.Context(), workspaceKey("w").ID())
	require.NoError(t, err)
	one := r.room(workspaceKey("w").ID())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(httpserver.HeaderServer, one.Server)
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	one.URL = s.URL
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	f := NewFront(FrontOptions{Sandboxes: r, Transport: transport})
	mux := http.NewServeMux()
	for _, m := range f.Mounts() {
		mux.Handle(m.Pattern, m.Handler)
	}
	front := httptest.NewServer(mux)
	defer front.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/api/workspaces/w/files/watch", http.NoBody)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	begins := make([]byte, 5)
	_, err = io.ReadFull(resp.Body, begins)
	require.NoError(t, err)
	require.Equal(t, "begun", string(begins))
	require.NoError(t, r.End(t.Context(), workspaceKey("w").ID()))
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
