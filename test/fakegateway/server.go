package fakegateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options configures a [Server]. The zero value is legal.
type Options struct {
	// Token is what requests must carry; "" means "fake-token".
	Token string
	// Legacy refuses the v1 framing: messages are JSON text.
	Legacy bool
	// Execute is what a kernel does with an execute_request, from busy to idle.
	// Nil means (*Cell).Serve.
	Execute func(*Cell)
	// Recover makes kernels remember what they sent and repeat it when they are
	// asked; Remember is how many messages, 0 means all.
	Recover  bool
	Remember int
	// MaxKernels is where a further kernel is refused, as Kernel Gateway does it.
	// 0: nowhere.
	MaxKernels int
	// Faults are those of the start; [Server.Set] changes them.
	Faults Faults
}

// Faults are the ways in which the server misbehaves.
type Faults struct {
	// Status answers a route with that status instead of serving it. Routes
	// are kernelspecs, create, get, delete, interrupt and channels.
	Status map[string]int
	// Times is how many requests Status spoils; 0 means all.
	Times int
	// Body goes with Status.
	Body string
	// Hang lets requests to these routes hang until the client leaves.
	Hang map[string]bool
	// HoldInterrupt delays interrupts until it is closed, also those whose client
	// has left meanwhile: they land then.
	HoldInterrupt chan struct{}
	// PendInterrupt answers interrupts at once and keeps them: what the kernel
	// takes in hand next is hit by one.
	PendInterrupt bool
	// HoldHandshake delays WebSocket handshakes until it is closed.
	HoldHandshake chan struct{}
	// DieAtBirth makes a kernel's process end before it answered once: the
	// handshake hangs and the kernel is not found.
	DieAtBirth bool
	// Mute kernels accept connections and never answer.
	Mute bool
	// LoseIdle is how many times kernel_info gets a reply but no idle on iopub,
	// as before the server's subscription took effect.
	LoseIdle int
	// LoseCreateAnswer makes the kernel and drops the connection.
	LoseCreateAnswer bool
	// State, if not empty, is what REST says of every kernel.
	State string
	// IgnoreID gives kernels an id of the server's choice.
	IgnoreID bool
	// ID is the id that every new kernel is said to have, whatever its own is.
	ID string
}

// Server is the fake; see the package documentation. [Start] makes one.
type Server struct {
	opts     Options
	listener net.Listener
	http     *http.Server
	closing  chan struct{}
	joins    sync.WaitGroup

	mu       sync.Mutex
	faults   Faults             // guarded by mu
	kernels  map[string]*Kernel // guarded by mu
	order    []*Kernel          // guarded by mu: every kernel there ever was
	requests []string           // guarded by mu
	creates  []map[string]any   // guarded by mu
}

// Start begins to listen. The error is that of the listener.
func Start(o Options) (*Server, error) {
	if o.Token == "" {
		o.Token = "fake-token"
	}
	if o.Execute == nil {
		o.Execute = (*Cell).Serve
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fake gateway: %w", err)
	}
	s := &Server{
		opts:     o,
		listener: l,
		closing:  make(chan struct{}),
		faults:   o.Faults,
		kernels:  map[string]*Kernel{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/kernelspecs", s.route("kernelspecs", s.kernelspecs))
	mux.HandleFunc("POST /api/kernels", s.route("create", s.create))
	mux.HandleFunc("GET /api/kernels/{id}", s.route("get", s.get))
	mux.HandleFunc("DELETE /api/kernels/{id}", s.route("delete", s.delete))
	mux.HandleFunc("POST /api/kernels/{id}/interrupt", s.route("interrupt", s.interrupt))
	mux.HandleFunc("GET /api/kernels/{id}/channels", s.route("channels", s.channels))
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.joins.Go(func() { _ = s.http.Serve(l) })
	return s, nil
}

// URL returns the base address.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Token returns what requests must carry.
func (s *Server) Token() string { return s.opts.Token }

// Set changes the faults.
func (s *Server) Set(change func(*Faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults)
}

// Close ends the server and waits for its goroutines.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	kernels := append([]*Kernel(nil), s.order...)
	s.mu.Unlock()
	_ = s.http.Close()
	for _, k := range kernels {
		k.end()
		k.Drop()
	}
	s.joins.Wait()
}

// Live returns the kernels that exist now, in the order of creation.
func (s *Server) Live() []*Kernel {
	s.mu.Lock()
	defer s.mu.Unlock()
	var live []*Kernel
	for _, k := range s.order {
		if s.kernels[k.id] == k {
			live = append(live, k)
		}
	}
	return live
}

// Requests returns "METHOD path" of every REST request so far.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// Creates returns the body of every request to create a kernel.
func (s *Server) Creates() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]map[string]any(nil), s.creates...)
}

// route wraps a handler with the token and the faults of its route.
func (s *Server) route(name string, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		f := s.faults
		code, hang := f.Status[name], f.Hang[name]
		if code != 0 && f.Times > 0 {
			if s.faults.Times--; s.faults.Times == 0 {
				s.faults.Status = nil
			}
		}
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != "token "+s.opts.Token:
			fail(w, http.StatusUnauthorized, "Unauthorized")
		case hang:
			select {
			case <-r.Context().Done():
			case <-s.closing:
			}
		case code != 0:
			body := f.Body
			if body == "" {
				body = "boom"
			}
			fail(w, code, body)
		default:
			serve(w, r)
		}
	}
}

// fail answers as Kernel Gateway does, with a traceback that nobody should see.
func fail(w http.ResponseWriter, code int, message string) {
	reply(w, code, map[string]any{
		"reason": message, "message": message,
		"traceback": "Traceback: File /srv/secret/path.py, line 1",
	})
}

// reply sends a JSON answer.
func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Set-Cookie", "username-fake=1")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *Server) kernelspecs(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{
		"default": "python3",
		"kernelspecs": map[string]any{"python3": map[string]any{
			"name": "python3",
			"spec": map[string]any{
				"argv": []string{"python", "-m", "ipykernel_launcher"}, "display_name": "Python 3",
				"language": "python", "interrupt_mode": "signal", "env": map[string]any{}, "metadata": map[string]any{},
			},
			"resources": map[string]any{},
		}},
	})
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	in := map[string]any{}
	if err != nil || json.Unmarshal(body, &in) != nil {
		fail(w, http.StatusBadRequest, "Invalid JSON")
		return
	}
	s.mu.Lock()
	s.creates = append(s.creates, in)
	f := s.faults
	s.mu.Unlock()
	id, _ := in["kernel_id"].(string)
	if id == "" || f.IgnoreID {
		id = newID()
	}
	k := newKernel(s, id)
	s.mu.Lock()
	select {
	case <-s.closing:
		s.mu.Unlock()
		k.end()
		fail(w, http.StatusServiceUnavailable, "closing")
		return
	default:
	}
	if s.opts.MaxKernels > 0 && len(s.kernels) >= s.opts.MaxKernels {
		s.mu.Unlock()
		k.end()
		fail(w, http.StatusForbidden, "Resource Limit")
		return
	}
	s.kernels[id] = k
	s.order = append(s.order, k)
	s.joins.Go(k.shellLoop)
	s.mu.Unlock()
	if f.DieAtBirth {
		k.Vanish()
	}
	if f.LoseCreateAnswer {
		panic(http.ErrAbortHandler)
	}
	model := k.model()
	if f.ID != "" {
		model["id"] = f.ID
	}
	reply(w, http.StatusCreated, model)
}

// find returns the kernel that a request names, or answers 404.
func (s *Server) find(w http.ResponseWriter, r *http.Request) *Kernel {
	id := r.PathValue("id")
	s.mu.Lock()
	k := s.kernels[id]
	s.mu.Unlock()
	if k == nil {
		fail(w, http.StatusNotFound, "Kernel does not exist: "+id)
	}
	return k
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	if k := s.find(w, r); k != nil {
		reply(w, http.StatusOK, k.model())
	}
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	if k := s.find(w, r); k != nil {
		k.Vanish()
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Server) interrupt(w http.ResponseWriter, r *http.Request) {
	k := s.find(w, r)
	if k == nil {
		return
	}
	s.mu.Lock()
	hold, pend := s.faults.HoldInterrupt, s.faults.PendInterrupt
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-s.closing:
		}
	}
	if pend {
		k.pending.Store(true)
	} else {
		k.Interrupt()
	}
	w.WriteHeader(http.StatusNoContent)
}

// forget makes a kernel unknown.
func (s *Server) forget(k *Kernel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kernels[k.id] == k {
		delete(s.kernels, k.id)
	}
}

// newID returns a random id of the form that Jupyter uses.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
