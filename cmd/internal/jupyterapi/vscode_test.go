package jupyterapi_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/jupyterapi"
)

// editor asks as VS Code's extension Jupyter does: the time is in the query of each request, so
// that nothing comes from a cache, and a request says that it is JSON, has it a body or not.
type editor struct{ *server }

func (e editor) asks(method, path, body string, want int, to any) {
	e.t.Helper()
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	status, text := e.ask(method, path+mark+strconv.FormatInt(time.Now().UnixMilli(), 10), body,
		"Authorization", "token "+token, "Content-Type", "application/json", "Accept", "*/*", "User-Agent", "node-fetch/1.0 (+https://github.com/bitinn/node-fetch)", "Connection", "close")
	require.Equal(e.t, want, status, "%s %s: %s", method, path, text)
	if to != nil {
		require.NoError(e.t, json.Unmarshal([]byte(text), to), text)
	}
}

// connect opens the channels of a kernel: the token is in a header and in the query, the
// subprotocol is offered, and so is compression.
func (e editor) connect(id, session string, header http.Header) *websocket.Conn {
	e.t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"v1.kernel.websocket.jupyter.org"}, EnableCompression: true}
	conn, resp, err := d.DialContext(e.t.Context(), "ws"+strings.TrimPrefix(e.url, "http")+"/api/kernels/"+id+"/channels?session_id="+session+"&token="+token, header)
	require.NoError(e.t, err)
	_ = resp.Body.Close()
	e.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(e.t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	require.Equal(e.t, "v1.kernel.websocket.jupyter.org", conn.Subprotocol())
	return conn
}

// TestAnEditorAddsTheServer looks for a login page first, without the token. That there is
// none has it go on with the token.
func TestAnEditorAddsTheServer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for path, want := range map[string]int{"": http.StatusTemporaryRedirect, "/": http.StatusForbidden, "/tree?": http.StatusForbidden, "/login?": http.StatusForbidden} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		require.NoError(t, err)
		resp, err := s.http.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, path)
		require.NotContains(t, resp.Header.Get("Location"), "login")
	}
	e := editor{s}
	var list []object
	e.asks("GET", "/api/kernels", "", http.StatusOK, &list)
	require.Empty(t, list)
	e.asks("GET", "/api/sessions", "", http.StatusOK, &list)
	require.Empty(t, list)
	var specs struct {
		Default     string
		Kernelspecs map[string]struct {
			Name      string
			Resources map[string]string
			Spec      struct {
				Language    string
				DisplayName string `json:"display_name"`
				Argv        []string
			}
		}
	}
	for range 3 { // and again, whenever it shows its list
		e.asks("GET", "/api/kernelspecs", "", http.StatusOK, &specs)
		one := specs.Kernelspecs[specs.Default]
		require.Equal(t, []string{specs.Default, "python"}, []string{one.Name, one.Spec.Language})
		require.NotEmpty(t, one.Spec.DisplayName)
		require.NotNil(t, one.Spec.Argv)
		require.NotNil(t, one.Resources)
	}
}

// TestAnEditorRunsANotebook goes from the session of a document through the life of its kernel.
func TestAnEditorRunsANotebook(t *testing.T) {
	t.Parallel()
	e := editor{serve(t)}
	const path = "a b-jvsc-3fd0d10d-7a5a-4f3c-9a86-3ed8ad1d1c0f.ipynb" // no file is there
	var made, again struct {
		ID, Path, Name, Type string
		Kernel               struct {
			ID, Name       string
			ExecutionState string `json:"execution_state"`
			LastActivity   string `json:"last_activity"`
			Connections    int
		}
	}
	body := `{"kernel":{"name":"python3"},"name":"a b-1.ipynb","path":"` + path + `","type":"notebook"}`
	e.asks("POST", "/api/sessions", body, http.StatusCreated, &made)
	require.Equal(t, []string{path, "a b-1.ipynb", "notebook", "python3"}, []string{made.Path, made.Name, made.Type, made.Kernel.Name})
	conn := e.connect(made.Kernel.ID, "one", http.Header{"Authorization": {"token " + token}})
	const head = `{"date":"2026-01-01T00:00:00.000Z","msg_id":"m","msg_type":"execute_request","session":"one","username":"","version":"5.2"}`
	run := func(code string) []string {
		return jupyterapi.Run(t, conn, head, `{"cellId":"vscode-notebook-cell:/a.ipynb#W0"}`, `{"code":`+strconv.Quote(code)+`,"silent":false,"store_history":true,"user_expressions":{},"allow_stdin":true,"stop_on_error":false}`)
	}
	require.Equal(t, []string{"status", "execute_input", "stream", "execute_result", "execute_reply", "status"}, run("x = 1\nprint('a')\nx"))

	pong := make(chan struct{}, 1)
	conn.SetPongHandler(func(string) error { pong <- struct{}{}; return nil })
	require.NoError(t, conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Minute))) // it asks every 30 seconds
	run("1")
	require.Len(t, pong, 1, "what was asked first is answered first")

	e.asks("GET", "/api/sessions/"+made.ID, "", http.StatusOK, &again)
	require.Equal(t, made.Kernel.ID, again.Kernel.ID)
	require.Equal(t, 1, again.Kernel.Connections)
	_, err := time.Parse(time.RFC3339, again.Kernel.LastActivity)
	require.NoError(t, err)
	e.asks("POST", "/api/kernels/"+made.Kernel.ID+"/interrupt", "", http.StatusNoContent, nil)
	e.asks("POST", "/api/kernels/"+made.Kernel.ID+"/restart", "", http.StatusOK, nil)
	conn = e.connect(made.Kernel.ID, "one", nil) // after a restart it connects anew, the token in the query
	require.Contains(t, run("x"), "error", "the variable has gone")

	e.asks("PATCH", "/api/sessions/"+made.ID, `{"path":"`+path+`","name":"a c.ipynb"}`, http.StatusOK, &again)
	require.Equal(t, []string{"a c.ipynb", made.Kernel.ID}, []string{again.Name, again.Kernel.ID})
	e.asks("DELETE", "/api/sessions/"+made.ID, "", http.StatusNoContent, nil)
	e.asks("DELETE", "/api/sessions/"+made.ID, "", http.StatusNotFound, nil) // which it takes for done
	e.asks("GET", "/api/kernels/"+made.Kernel.ID, "", http.StatusNotFound, nil)
}

// TestAnEditorKeepsANotebookHere as it does to have it exported.
func TestAnEditorKeepsANotebookHere(t *testing.T) {
	t.Parallel()
	e := editor{serve(t)}
	var made object
	e.asks("POST", "/api/contents/", `{"type":"notebook"}`, http.StatusCreated, &made)
	require.Equal(t, "Untitled.ipynb", made["path"])
	e.asks("PATCH", "/api/contents/Untitled.ipynb", `{"path":"a-jvsc-1.ipynb"}`, http.StatusOK, &made)
	require.Equal(t, "a-jvsc-1.ipynb", made["path"])
	e.asks("PUT", "/api/contents/a-jvsc-1.ipynb", `{"content":{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5},"type":"notebook"}`, http.StatusOK, nil)
	e.asks("POST", "/api/contents/", `{"type":"file","ext":".html"}`, http.StatusCreated, &made)
	e.asks("GET", "/api/contents/untitled.html?type=file&format=text&content=1", "", http.StatusOK, &made)
	require.Equal(t, object{"content": "", "format": "text"}, object{"content": made["content"], "format": made["format"]})
	e.asks("GET", "/api/contents/untitled.html?type=file&format=base64&content=1", "", http.StatusOK, nil)
	for _, name := range []string{"untitled.html", "a-jvsc-1.ipynb"} {
		e.asks("DELETE", "/api/contents/"+name, "", http.StatusNoContent, nil)
	}
}
