package bridge

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/internal/inbound"
	"github.com/coppice-run/coppice/messages"
)

// Path is where calls are made.
const Path = "/v1/tool"

// maxBody is the longest request, in bytes.
const maxBody = 16 << 20

// Serve serves one call. It returns soon after ctx has ended.
type Serve func(ctx context.Context, c messages.HostCall) messages.HostResult

// Server is the endpoint of one host.
type Server struct {
	http        *http.Server
	connections *inbound.Connections
	url         string
	// served is closed when the accepting goroutine has ended; Close joins it.
	served chan struct{}
	// life ends what runs when the server closes.
	life context.Context
	end  context.CancelFunc

	mu       sync.Mutex
	sessions map[string]session // guarded by mu
}

// session is one that may call.
type session struct {
	token string
	serve Serve
}

// Start listens on a free port of the loopback interface or, where path is not "", on a socket
// with that path, for code that has no network. ctx bounds Start only.
func Start(ctx context.Context, path string) (*Server, error) {
	var lc net.ListenConfig
	network, address := "tcp", "127.0.0.1:0"
	if path != "" {
		network, address = "unix", path
	}
	listener, err := lc.Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listen for host calls: %w", err)
	}
	url := "http://" + listener.Addr().String()
	if path != "" {
		url = "unix:" + path
	}
	return On(listener, url), nil
}

// On serves what a listener accepts, which it closes. url is how code reaches it.
func On(listener net.Listener, url string) *Server {
	s := &Server{url: url, served: make(chan struct{}), sessions: map[string]session{}}
	s.life, s.end = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:        http.HandlerFunc(s.handle),
		MaxHeaderBytes: 16 << 10,
		BaseContext:    func(net.Listener) context.Context { return s.life },
	}
	s.connections = inbound.Guard(s.http, inbound.Limits{})
	go func() { // ends with Close
		defer close(s.served)
		_ = s.http.Serve(s.connections.Listener(listener)) // it always says that it was closed
	}()
	return s
}

// URL is the address of the endpoint, without Path.
func (s *Server) URL() string { return s.url }

// Register lets a session call, and returns its token.
func (s *Server) Register(id string, serve Serve) (token string) {
	token = rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[id] = session{token: token, serve: serve}
	return token
}

// Unregister ends the right of a session. Calls that run go on.
func (s *Server) Unregister(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// Close ends the endpoint and what it serves.
func (s *Server) Close(ctx context.Context) error {
	s.end()
	s.connections.End()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("close the endpoint of host calls: %w", errors.Join(err, s.http.Close()))
	}
	<-s.served
	return err
}

// request is the body of a call.
type request struct {
	Session string           `json:"session"`
	Run     string           `json:"run"`
	Name    string           `json:"name"`
	Kind    string           `json:"kind"`
	Args    messages.RawJSON `json:"args"`
}

// answer is the body of every response.
type answer struct {
	OK        bool             `json:"ok"`
	Value     messages.RawJSON `json:"value,omitempty"`
	Error     string           `json:"error,omitempty"`
	ErrorType string           `json:"error_type,omitempty"`
	NextSteps []string         `json:"next_steps,omitempty"`
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case r.URL.Path != Path || r.Method != http.MethodPost:
		reply(w, http.StatusNotFound, refusal("there is only POST "+Path))
		return
	case !bearer || !s.known(token):
		w.Header().Set("Connection", "close")
		reply(w, http.StatusForbidden, refusal("the token is not that of a session"))
		return
	}
	inbound.Known(r.Context())
	var q request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&q); err != nil {
		reply(w, http.StatusBadRequest, refusal("Invalid JSON body"))
		return
	}
	if q.Session == "" || q.Run == "" || q.Name == "" {
		reply(w, http.StatusBadRequest, refusal("Missing session/run/name"))
		return
	}
	one, ok := s.session(q.Session)
	switch {
	case !ok:
		reply(w, http.StatusOK, refusal(fmt.Sprintf("No active Python tool bridge session: %s:%s", q.Session, q.Run)))
		return
	case subtle.ConstantTimeCompare([]byte(one.token), []byte(token)) != 1:
		reply(w, http.StatusForbidden, refusal("the token is that of another session"))
		return
	}
	if q.Kind == "" {
		q.Kind = string(messages.CallTool)
	}
	if len(q.Args) == 0 {
		q.Args = messages.RawJSON("{}")
	}
	res := one.serve(r.Context(), messages.HostCall{Kind: messages.HostCallKind(q.Kind), Name: q.Name, Args: q.Args})
	a := answer{OK: res.Error == nil, Value: res.Value, NextSteps: res.NextSteps}
	if res.Error != nil {
		a.Value, a.Error, a.ErrorType = nil, res.Error.Message, res.Error.Type
	}
	reply(w, http.StatusOK, a)
}

// known says whether a token is that of some session.
func (s *Server) known(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := 0
	for _, one := range s.sessions {
		found |= subtle.ConstantTimeCompare([]byte(one.token), []byte(token))
	}
	return found == 1
}

func (s *Server) session(id string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.sessions[id]
	return one, ok
}

func refusal(why string) answer { return answer{Error: why, ErrorType: "HostCallError"} }

func reply(w http.ResponseWriter, status int, a answer) {
	body, err := json.Marshal(a)
	if err != nil {
		body, _ = json.Marshal(refusal("the value is not JSON: " + err.Error())) // of strings only
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // who hung up does not want it
}
