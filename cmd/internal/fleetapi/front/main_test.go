package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is that of the fronts.
const patience = 10 * time.Second

// rooms are sandboxes in memory, whose servers are counters.
type rooms struct {
	mu    sync.Mutex
	n     int
	of    map[string]*aRoom       // by key; guarded by mu
	at    map[string]http.Handler // by host; guarded by mu
	fails error                   // of each claim that is to be made; guarded by mu
	blind error                   // of each Confirm; guarded by mu
	ended []string                // guarded by mu
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

func newRooms() *rooms { return &rooms{at: map[string]http.Handler{}, of: map[string]*aRoom{}} }

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
	r.at[strings.TrimPrefix(one.URL, "http://")] = one
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
	w.Header().Set("Set-Cookie", "of=a-sandbox")
	if r.Method == http.MethodPost && r.URL.Path == "/api/executions" {
		w.Header().Set("Location", "/api/executions/x1")
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = fmt.Fprintf(w, `{"counted":%d,"sessions":[{"session":"s","node":"another"}]}`, counted)
}

// RoundTrip implements [http.RoundTripper].
func (r *rooms) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	h := r.at[req.URL.Host]
	r.mu.Unlock()
	if h == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	if rec.Header().Get("Breaks") != "" {
		return nil, io.ErrUnexpectedEOF
	}
	return rec.Result(), nil
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
		r.Header.Set(httpserver.HeaderEpoch, fmt.Sprint(epoch))
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

func newFront(r *rooms) *Front {
	return New(Options{Sandboxes: r, Transport: r, Host: "sandbox.test", Token: "of-the-front", Patience: patience})
}

// inSandbox is the key of the session s.
const inSandbox = "s@"
