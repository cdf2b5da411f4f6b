package fakegateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/test/fakegateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// conversation is a client of this test alone, in the legacy framing, so that
// the fake is held to the protocol without the client that it serves to test.
type conversation struct {
	t  *testing.T
	ws *websocket.Conn
}

type wireMessage struct {
	Channel string         `json:"channel"`
	Header  map[string]any `json:"header"`
	Parent  map[string]any `json:"parent_header"`
	Content map[string]any `json:"content"`
}

func start(t *testing.T, o fakegateway.Options) *fakegateway.Server {
	t.Helper()
	s, err := fakegateway.Start(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func call(t *testing.T, s *fakegateway.Server, method, path, body, token string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "token "+token)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	out := map[string]any{}
	if resp.StatusCode != http.StatusNoContent {
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&out))
	}
	return resp.StatusCode, out
}

func dial(t *testing.T, s *fakegateway.Server, id string) *conversation {
	t.Helper()
	url := strings.Replace(s.URL(), "http", "ws", 1) + "/api/kernels/" + id + "/channels?session_id=mine"
	ws, resp, err := websocket.DefaultDialer.DialContext(t.Context(), url, http.Header{"Authorization": {"token " + s.Token()}})
	require.NoError(t, err)
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = ws.Close() })
	return &conversation{t, ws}
}

func (c *conversation) send(channel, typ, id string, content map[string]any) {
	c.t.Helper()
	require.NoError(c.t, c.ws.WriteJSON(map[string]any{
		"channel": channel, "header": map[string]any{"msg_id": id, "msg_type": typ, "session": "mine"},
		"parent_header": map[string]any{}, "metadata": map[string]any{}, "content": content, "buffers": []any{},
	}))
}

// until reads up to the first message of this type and returns the types on
// the way, that one included, and its content.
func (c *conversation) until(last string) (seen []string, content map[string]any) {
	c.t.Helper()
	for {
		var m wireMessage
		require.NoError(c.t, c.ws.ReadJSON(&m))
		typ, _ := m.Header["msg_type"].(string)
		if state, ok := m.Content["execution_state"].(string); ok {
			typ = state
		}
		seen = append(seen, typ)
		if typ == last {
			return seen, m.Content
		}
	}
}

func TestRESTAndOneCell(t *testing.T) {
	t.Parallel()
	s := start(t, fakegateway.Options{})
	code, _ := call(t, s, http.MethodGet, "/api/kernelspecs", "", "wrong")
	require.Equal(t, http.StatusUnauthorized, code)
	code, model := call(t, s, http.MethodPost, "/api/kernels", `{"name":"python3","env":{}}`, s.Token())
	require.Equal(t, http.StatusCreated, code)
	id, _ := model["id"].(string)

	c := dial(t, s, id)
	c.send("shell", "kernel_info_request", "1", nil)
	seen, _ := c.until("idle")
	require.Equal(t, []string{"busy", "kernel_info_reply", "idle"}, seen)

	c.send("shell", "execute_request", "2", map[string]any{"code": "out a\nresult 2\nraise ValueError no"})
	seen, _ = c.until("idle")
	require.Equal(t, []string{"busy", "execute_input", "stream", "execute_result", "error", "execute_reply", "idle"}, seen)

	code, _ = call(t, s, http.MethodDelete, "/api/kernels/"+id, "", s.Token())
	require.Equal(t, http.StatusNoContent, code)
	code, _ = call(t, s, http.MethodGet, "/api/kernels/"+id, "", s.Token())
	require.Equal(t, http.StatusNotFound, code)
	require.Empty(t, s.Live())
}

func TestInterruptAndInput(t *testing.T) {
	t.Parallel()
	s := start(t, fakegateway.Options{})
	_, model := call(t, s, http.MethodPost, "/api/kernels", `{"env":{}}`, s.Token())
	id, _ := model["id"].(string)
	c := dial(t, s, id)

	c.send("shell", "execute_request", "1", map[string]any{"code": "await"})
	c.until("execute_input")
	code, _ := call(t, s, http.MethodPost, "/api/kernels/"+id+"/interrupt", "", s.Token())
	require.Equal(t, http.StatusNoContent, code)
	c.send("shell", "kernel_info_request", "2", nil)
	_, content := c.until("execute_reply")
	require.Equal(t, "KeyboardInterrupt", content["ename"])
	c.until("kernel_info_reply")
	c.until("idle")

	c.send("shell", "execute_request", "3", map[string]any{"code": "ask name", "allow_stdin": false})
	_, content = c.until("execute_reply")
	require.Equal(t, "StdinNotImplementedError", content["ename"])
	require.Zero(t, s.Live()[0].StrayInterrupts())
}
