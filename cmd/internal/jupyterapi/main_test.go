package jupyterapi_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/jupyterapi"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// token opens the servers of these tests.
const token = "sesame-open-0123456789"

// server is one that serves kernels of a real host.
type server struct {
	t    *testing.T
	url  string // with the base
	cwd  string
	host *coppice.Host
	api  *jupyterapi.API
	http *http.Client
	// asked takes the next request in place of the API; nil: that serves it.
	asked atomic.Pointer[func(r *http.Request)]
}

// serve starts one, whose host has these options besides its own.
func serve(t *testing.T, more ...func(*coppice.Options)) *server {
	t.Helper()
	o := coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Python: testpython.Path(t), Env: os.Environ()}
	for _, change := range more {
		change(&o)
	}
	s, end := begin(t, o, jupyterapi.Options{Cwd: t.TempDir()})
	t.Cleanup(func() {
		end()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, s.host.Shutdown(ctx).Clean())
	})
	return s
}

// begin starts a host and a server of its kernels, which end ends.
func begin(t *testing.T, o coppice.Options, of jupyterapi.Options) (s *server, end func()) {
	t.Helper()
	host, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	of.Host, of.Version, of.Logger = host, "1.2.3", slog.New(slog.DiscardHandler)
	api := jupyterapi.New(of)
	s = &server{t: t, cwd: of.Cwd, host: host, api: api}
	mounts := api.Mounts()
	for i := range mounts {
		mounts[i].Handler = s.listening(mounts[i].Handler)
	}
	l, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0", Token: token}, mounts...)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx) }()
	transport := &http.Transport{}
	s.url, s.http = l.URL()+jupyterapi.Base, &http.Client{Transport: transport}
	return s, func() {
		stop()
		require.NoError(t, <-ended)
		transport.CloseIdleConnections()
		api.Close()
	}
}

// listening lets a test have a request.
func (s *server) listening(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.asked.Load(); f != nil {
			(*f)(r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

type object = map[string]any

// ask makes a request with these headers, names and values, and returns the status and the
// text of the answer.
func (s *server) ask(method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.http.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(data)
}

// rest asks with the token, expects a status, and reads the answer into to, if it is not nil.
func (s *server) rest(method, path, body string, want int, to any) {
	s.t.Helper()
	status, text := s.ask(method, path, body, "Authorization", "token "+token)
	require.Equal(s.t, want, status, text)
	if to != nil {
		require.NoError(s.t, json.Unmarshal([]byte(text), to), text)
	}
}

// start starts a kernel.
func (s *server) start() string {
	s.t.Helper()
	var k struct{ ID string }
	s.rest("POST", "/api/kernels", `{"name":"python3"}`, http.StatusCreated, &k)
	require.NotEmpty(s.t, k.ID)
	return k.ID
}

// socket is a client of a kernel, in the framing of JSON text.
type socket struct {
	t    *testing.T
	conn *websocket.Conn
}

// dial connects to a kernel.
func (s *server) dial(id string, subprotocols ...string) *socket {
	s.t.Helper()
	return s.dialAs(messages.NewID(), id, subprotocols...)
}

// dialAs connects as a client that calls itself so.
func (s *server) dialAs(session, id string, subprotocols ...string) *socket {
	s.t.Helper()
	c := s.redial(session, id, subprotocols...)
	if len(subprotocols) > 0 { // its messages have another form
		return c
	}
	c.until(func(m received) bool { // what the kernel does
		return m.Parent.ID == "" && (isStatus(m, "idle") || isStatus(m, "busy"))
	})
	return c
}

// redial connects, and leaves it to the test to read what the client is told first.
func (s *server) redial(session, id string, subprotocols ...string) *socket {
	s.t.Helper()
	d := websocket.Dialer{Subprotocols: subprotocols}
	conn, resp, err := d.DialContext(s.t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/api/kernels/"+id+"/channels?session_id="+session+"&token="+token, nil)
	require.NoError(s.t, err)
	_ = resp.Body.Close()
	s.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(s.t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	return &socket{s.t, conn}
}

// received is a message of the kernel.
type received struct {
	Channel string
	Header  struct {
		ID      string `json:"msg_id"`
		Type    string `json:"msg_type"`
		Session string
		Version string
	}
	Parent struct {
		ID string `json:"msg_id"`
	} `json:"parent_header"`
	Metadata object
	Content  object
}

// send sends a request, and returns its id.
func (c *socket) send(channel, kind string, content object) string {
	c.t.Helper()
	id := messages.NewID()
	require.NoError(c.t, c.conn.WriteJSON(object{
		"channel": channel, "header": object{"msg_id": id, "msg_type": kind, "session": "x", "username": "", "version": "5.3", "date": ""},
		"parent_header": object{}, "metadata": object{}, "content": content,
	}))
	return id
}

// next is the next message.
func (c *socket) next() received {
	c.t.Helper()
	var m received
	require.NoError(c.t, c.conn.ReadJSON(&m))
	return m
}

// until collects messages up to one.
func (c *socket) until(last func(received) bool) []received {
	c.t.Helper()
	var all []received
	for {
		m := c.next()
		all = append(all, m)
		if last(m) {
			return all
		}
	}
}

// idle is the end of a request.
func idle(id string) func(received) bool {
	return func(m received) bool { return m.Parent.ID == id && isStatus(m, "idle") }
}

func isStatus(m received, state string) bool {
	return m.Header.Type == "status" && m.Content["execution_state"] == state
}

// execute runs code, and returns the messages of it.
func (c *socket) execute(code string, more ...any) []received {
	c.t.Helper()
	content := object{"code": code, "silent": false, "store_history": true, "user_expressions": object{}, "allow_stdin": false, "stop_on_error": true}
	for i := 0; i < len(more); i += 2 {
		name, _ := more[i].(string)
		content[name] = more[i+1]
	}
	return c.until(idle(c.send("shell", "execute_request", content)))
}

// kinds are the types of messages; those of streams one after the other are one.
func kinds(all []received) []string {
	var list []string
	for _, m := range all {
		if m.Header.Type != "stream" || len(list) == 0 || list[len(list)-1] != "stream" {
			list = append(list, m.Header.Type)
		}
	}
	return list
}

// of is the content of the first message of a type.
func of(t *testing.T, all []received, kind string) object {
	t.Helper()
	for _, m := range all {
		if m.Header.Type == kind {
			return m.Content
		}
	}
	require.Failf(t, "there is no message of the type", "%s in %v", kind, kinds(all))
	return nil
}

// text is what was written to the streams.
func text(all []received) string {
	var b strings.Builder
	for _, m := range all {
		if s, ok := m.Content["text"].(string); ok && m.Header.Type == "stream" {
			b.WriteString(s)
		}
	}
	return b.String()
}
