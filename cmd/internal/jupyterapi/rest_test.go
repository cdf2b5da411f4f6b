package jupyterapi_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
)

// TestTheToken is taken in three forms, and looked at for the WebSocket, too.
func TestTheToken(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for name, tc := range map[string]struct {
		path   string
		header []string
		want   int
	}{
		"token":             {"/api", []string{"Authorization", "token " + token}, 200},
		"Token":             {"/api", []string{"Authorization", "Token " + token}, 200},
		"Bearer":            {"/api", []string{"Authorization", "Bearer " + token}, 200},
		"query":             {"/api?token=" + token, nil, 200},
		"none":              {"/api", nil, 403},
		"a wrong one":       {"/api", []string{"Authorization", "token no"}, 403},
		"a wrong query":     {"/api?token=no", nil, 403},
		"another scheme":    {"/api", []string{"Authorization", "Basic " + token}, 403},
		"another origin":    {"/api?token=" + token, []string{"Origin", "http://example.org"}, 403},
		"channels, none":    {"/api/kernels/x/channels", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 403},
		"channels, of none": {"/api/kernels/x/channels?token=" + token, []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 404},
	} {
		status, text := s.ask("GET", tc.path, "", tc.header...)
		require.Equal(t, tc.want, status, "%s: %s", name, text)
	}
	_, text := s.ask("GET", "/api", "")
	require.Contains(t, text, `"message":"Forbidden"`)
}

// TestTheServer says what it is, and what it has not.
func TestTheServer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var got object
	s.rest("GET", "/api", "", http.StatusOK, &got)
	require.Equal(t, object{"version": "2.20.0"}, got)
	s.rest("GET", "/api/kernelspecs", "", http.StatusOK, &got)
	require.Equal(t, "python3", got["default"])
	require.Contains(t, got["kernelspecs"], "python3")
	s.rest("GET", "/api/kernelspecs/python3", "", http.StatusOK, &got)
	require.Equal(t, "python3", got["name"])
	s.rest("GET", "/api/me", "", http.StatusOK, &got)
	require.Contains(t, got, "identity")
	got = object{}
	s.rest("GET", "/api/kernelspecs/julia", "", http.StatusNotFound, &got)
	require.Equal(t, object{"message": "Kernel spec julia not found", "reason": nil}, got)
	s.rest("POST", "/api/terminals", "{}", http.StatusNotImplemented, &got)
	require.Equal(t, "Not Implemented", got["message"])
	s.rest("GET", "/api/contents", "", http.StatusOK, &got)
	require.Equal(t, "directory", got["type"])
	s.rest("GET", "/api/nothing", "", http.StatusNotFound, &got)
	require.Equal(t, "Not Found", got["message"])
}

// TestKernels goes through the life of one.
func TestKernels(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var got object
	s.rest("POST", "/api/kernels", `{"name":"julia"}`, http.StatusNotFound, &got)
	require.Contains(t, got["message"], "no such kernel: julia")
	s.rest("POST", "/api/kernels", `{`, http.StatusBadRequest, &got)
	require.Equal(t, "Invalid JSON in body of request", got["message"])

	require.NoError(t, os.Mkdir(filepath.Join(s.cwd, "sub"), 0o700))
	got = object{}
	s.rest("POST", "/api/kernels", `{"name":"python3","path":"sub/a.ipynb","env":{"KERNEL_USERNAME":"x"}}`, http.StatusCreated, &got)
	id, _ := got["id"].(string)
	require.Equal(t, "python3", got["name"])
	require.Equal(t, "idle", got["execution_state"])
	require.InDelta(t, 0, got["connections"], 0)
	live, err := s.host.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, live, 1)
	require.Equal(t, id, live[0].Key.Session, "the kernel is a session of the host")
	require.Equal(t, filepath.Join(s.cwd, "sub"), live[0].Key.Cwd)

	s.rest("POST", "/api/kernels", `{"cwd":"sub"}`, http.StatusBadRequest, nil)
	s.rest("POST", "/api/kernels", `{"cwd":"/no/such/directory"}`, http.StatusBadRequest, nil)
	elsewhere := t.TempDir()
	var other object
	s.rest("POST", "/api/kernels", `{"cwd":`+strconv.Quote(elsewhere)+`}`, http.StatusCreated, &other)
	live, err = s.host.Sessions(t.Context())
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(live, func(i coppice.SessionInfo) bool { return i.Key.Session == other["id"] && i.Key.Cwd == elsewhere }))
	otherID, _ := other["id"].(string)
	s.rest("DELETE", "/api/kernels/"+otherID, "", http.StatusNoContent, nil)

	var list []object
	s.rest("GET", "/api/kernels", "", http.StatusOK, &list)
	require.Len(t, list, 1)
	s.rest("POST", "/api/kernels/"+id+"/interrupt", "", http.StatusNoContent, nil)
	s.rest("POST", "/api/kernels/"+id+"/restart", "", http.StatusOK, &got)
	require.Equal(t, id, got["id"])
	require.Equal(t, "idle", got["execution_state"])
	s.rest("GET", "/api/status", "", http.StatusOK, &got)
	require.InDelta(t, 1, got["kernels"], 0)
	s.rest("DELETE", "/api/kernels/"+id, "", http.StatusNoContent, nil)
	s.rest("GET", "/api/kernels/"+id, "", http.StatusNotFound, &got)
	require.Equal(t, "Kernel does not exist: "+id, got["message"])
	require.Eventually(t, func() bool {
		live, err := s.host.Sessions(t.Context())
		return err == nil && len(live) == 0
	}, time.Minute, 10*time.Millisecond, "the session has ended")
}

// TestSessions are documents with kernels.
func TestSessions(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var made, got object
	s.rest("POST", "/api/sessions", `{"type":"notebook"}`, http.StatusBadRequest, &got)
	require.Equal(t, "Missing field in JSON data: path", got["message"])
	const body = `{"path":"a.ipynb","name":"a","type":"notebook","kernel":{"id":null,"name":"python3"}}`
	s.rest("POST", "/api/sessions", body, http.StatusCreated, &made)
	id, _ := made["id"].(string)
	kernel, _ := made["kernel"].(object)
	first, _ := kernel["id"].(string)
	require.Equal(t, object{"path": "a.ipynb", "name": "a"}, made["notebook"])
	s.rest("POST", "/api/sessions", body, http.StatusCreated, &got)
	require.Equal(t, id, got["id"], "the document has a kernel")

	second := s.start()
	s.rest("PATCH", "/api/sessions/"+id, `{"path":"b.ipynb","kernel":{"id":"`+second+`"}}`, http.StatusOK, &got)
	require.Equal(t, "b.ipynb", got["path"])
	kernel, _ = got["kernel"].(object)
	require.Equal(t, second, kernel["id"])
	s.rest("GET", "/api/kernels/"+first, "", http.StatusNotFound, nil)
	var list []object
	s.rest("GET", "/api/sessions", "", http.StatusOK, &list)
	require.Len(t, list, 1)
	s.rest("DELETE", "/api/sessions/"+id, "", http.StatusNoContent, nil)
	s.rest("GET", "/api/sessions/"+id, "", http.StatusNotFound, nil)
	s.rest("GET", "/api/kernels/"+second, "", http.StatusNotFound, nil)
}

// TestOneDocument is made, with one kernel, by however many ask for its path at once.
func TestOneDocument(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const many = 8
	ids := make(chan string, many)
	for range many {
		go func() { // the test takes what each has to say
			status, text := s.ask("POST", "/api/sessions", `{"path":"a.ipynb","type":"notebook","name":"a"}`, "Authorization", "token "+token)
			var d struct{ ID string }
			if json.Unmarshal([]byte(text), &d) != nil || status != http.StatusCreated {
				d.ID = text
			}
			ids <- d.ID
		}()
	}
	first := <-ids
	for range many - 1 {
		require.Equal(t, first, <-ids)
	}
	var list []object
	s.rest("GET", "/api/kernels", "", http.StatusOK, &list)
	require.Len(t, list, 1)
	s.rest("POST", "/api/sessions", `{"path":"b.ipynb","type":"notebook","kernel":{"name":"julia"}}`, http.StatusNotFound, nil)
	s.rest("POST", "/api/sessions", `{"path":"b.ipynb","type":"notebook"}`, http.StatusCreated, nil) // what could not be made holds nobody up
}

// TestDeletingLetsClientsGo tells them that the kernel is dead before.
func TestDeletingLetsClientsGo(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.start()
	c := s.dial(id)
	c.execute("1")
	s.rest("DELETE", "/api/kernels/"+id, "", http.StatusNoContent, nil)
	c.until(func(m received) bool { return isStatus(m, "dead") })
	_, _, err := c.conn.ReadMessage()
	require.True(t, websocket.IsCloseError(err, websocket.CloseNormalClosure), "%v", err)
}

// TestALeaseEnds with the last connection, however that went.
func TestALeaseEnds(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var k struct{ ID string }
	s.rest("POST", "/api/kernels", `{"leased":true}`, http.StatusCreated, &k)
	first, second := s.dial(k.ID), s.dial(k.ID)
	first.execute("x = 1")
	require.NoError(t, first.conn.Close())
	require.Equal(t, object{"text/plain": "1"}, of(t, second.execute("x"), "execute_result")["data"])
	require.NoError(t, second.conn.Close())
	require.Eventually(t, func() bool {
		status, _ := s.ask("GET", "/api/kernels/"+k.ID, "", "Authorization", "token "+token)
		return status == http.StatusNotFound
	}, time.Minute, 10*time.Millisecond)
}
