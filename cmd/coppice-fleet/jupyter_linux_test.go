package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// jupyter makes a request as Jupyter's clients do, with the token in the query.
func (n *node) jupyter(method, path, body string, want int, to any) answer {
	n.t.Helper()
	sign := "?"
	if strings.Contains(path, "?") {
		sign = "&"
	}
	a := n.e2b(method, "/jupyter"+path+sign+"token="+token, body, "Content-Type", "application/json")
	require.Equal(n.t, want, a.status, "%s %s: %s", method, path, a.body)
	if to != nil {
		require.NoError(n.t, json.Unmarshal([]byte(a.body), to), a.body)
	}
	return a
}

// channels connects to a kernel.
func (n *node) channels(id string) *websocket.Conn {
	n.t.Helper()
	at := "ws" + strings.TrimPrefix(n.url, "http") + "/jupyter/api/kernels/" + id + "/channels?token=" + token
	conn, resp, err := websocket.DefaultDialer.DialContext(n.t.Context(), at, nil)
	require.NoError(n.t, err)
	_ = resp.Body.Close()
	n.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(n.t, conn.SetReadDeadline(time.Now().Add(patience)))
	return conn
}

// code runs code by a connection, and returns what it has printed.
func code(t *testing.T, conn *websocket.Conn, id, code string) string {
	t.Helper()
	type object = map[string]any
	require.NoError(t, conn.WriteJSON(object{
		"channel": "shell", "header": object{"msg_id": id, "msg_type": "execute_request", "session": "x", "username": "", "version": "5.3", "date": ""},
		"parent_header": object{}, "metadata": object{},
		"content": object{"code": code, "silent": false, "store_history": true, "user_expressions": object{}, "allow_stdin": false, "stop_on_error": true},
	}))
	var printed strings.Builder
	for {
		var m struct {
			Header struct {
				Type string `json:"msg_type"`
			}
			Parent struct {
				ID string `json:"msg_id"`
			} `json:"parent_header"`
			Content struct {
				Text  string
				State string `json:"execution_state"`
			}
		}
		require.NoError(t, conn.ReadJSON(&m))
		switch {
		case m.Parent.ID != id:
		case m.Header.Type == "stream":
			printed.WriteString(m.Content.Text)
		case m.Header.Type == "status" && m.Content.State == "idle":
			return strings.TrimSpace(printed.String())
		}
	}
}

type ofKernel struct{ ID string }

// TestKernelsOfJupyter are one thing at each node, also at one that has none: started where there is
// room, and used from anywhere. A document has one kernel, whoever asks for it. With its node a kernel
// is gone, and its connections end.
func TestKernelsOfJupyter(t *testing.T) {
	t.Parallel()
	fleet := newNodes(t).keeps()
	kept := fleet.more()
	fleet.more = func() []string { return append([]string{"--jupyter", "--fleet-placement", "spread"}, kept...) }
	a, b := fleet.node("a"), fleet.node("b")
	front := fleet.node("front", "--fleet-front")

	at := map[string]string{} // the node of each kernel
	var ids []string
	for len(at) < 4 || !both(at) {
		var k ofKernel
		made := front.jupyter(http.MethodPost, "/api/kernels", `{}`, http.StatusCreated, &k)
		ids, at[k.ID] = append(ids, k.ID), made.header.Get("Coppice-Node")
		require.Less(t, len(ids), 40, "they are started at both: %v", at)
	}
	require.Equal(t, fmt.Sprint(len(ids)), sum(a.metric("coppice_fleet_claims"), b.metric("coppice_fleet_claims")), "each is claimed")
	for _, n := range []*node{front, a, b} {
		var list []ofKernel
		n.jupyter(http.MethodGet, "/api/kernels", "", http.StatusOK, &list)
		require.Equal(t, ids, slices.Collect(func(yield func(string) bool) {
			for _, k := range list {
				if !yield(k.ID) {
					return
				}
			}
		}))
	}
	for i, id := range ids {
		for j, n := range []*node{front, a, b} {
			require.Equal(t, fmt.Sprint(j+1), code(t, n.channels(id), fmt.Sprint("r", i, j), "n = globals().get('n', 0) + 1\nprint(n)"), "it is one kernel")
		}
		front.jupyter(http.MethodPost, "/api/kernels/"+id+"/interrupt", "", http.StatusNoContent, nil)
	}
	var again ofKernel
	b.jupyter(http.MethodPost, "/api/kernels/"+ids[0]+"/restart", "", http.StatusOK, &again)
	require.Equal(t, ids[0], again.ID)
	require.Equal(t, "False", code(t, a.channels(ids[0]), "after", "print('n' in globals())"))

	// One document, which two ask for at once by different nodes.
	var documents [2]struct {
		ID     string
		Kernel ofKernel
	}
	var asked sync.WaitGroup
	for i, n := range []*node{front, b} {
		asked.Go(func() {
			n.jupyter(http.MethodPost, "/api/sessions", `{"path":"one.ipynb","type":"notebook","name":"","kernel":{"name":""}}`, http.StatusCreated, &documents[i])
		})
	}
	asked.Wait()
	require.Equal(t, documents[0], documents[1])
	var listed []ofKernel
	a.jupyter(http.MethodGet, "/api/sessions", "", http.StatusOK, &listed)
	require.Equal(t, []ofKernel{{documents[0].ID}}, listed)
	var shared struct{ Kernel ofKernel }
	front.jupyter(http.MethodPost, "/api/sessions", `{"path":"two.ipynb","type":"notebook","name":"","kernel":{"id":"`+ids[1]+`"}}`, http.StatusCreated, &shared)
	require.Equal(t, ids[1], shared.Kernel.ID)
	front.jupyter(http.MethodPatch, "/api/sessions/"+documents[0].ID, `{"path":"three.ipynb"}`, http.StatusOK, nil)
	b.jupyter(http.MethodDelete, "/api/sessions/"+documents[0].ID, "", http.StatusNoContent, nil)
	front.jupyter(http.MethodGet, "/api/sessions/"+documents[0].ID, "", http.StatusNotFound, nil)
	front.jupyter(http.MethodGet, "/api/kernels/none", "", http.StatusNotFound, nil)

	dies := b
	if strings.HasPrefix(at[ids[0]], "a-") {
		dies = a
	}
	conn := front.channels(ids[0])
	require.Equal(t, "1", code(t, conn, "before", "print(1)"))
	dies.signal(syscall.SIGKILL)
	<-dies.gone
	for err := error(nil); err == nil; {
		_, _, err = conn.ReadMessage()
	}
	for _, id := range ids {
		if at[id] == at[ids[0]] {
			front.jupyter(http.MethodGet, "/api/kernels/"+id, "", http.StatusNotFound, nil)
			continue
		}
		require.Equal(t, "True", code(t, front.channels(id), "last", "print('n' in globals())"))
		front.jupyter(http.MethodDelete, "/api/kernels/"+id, "", http.StatusNoContent, nil)
	}
	var list []ofKernel
	front.jupyter(http.MethodGet, "/api/kernels", "", http.StatusOK, &list)
	require.Empty(t, list)
}

func both(at map[string]string) bool {
	seen := map[string]bool{}
	for _, node := range at {
		seen[node] = true
	}
	return len(seen) > 1
}

func sum(counts ...string) string {
	total := 0
	for _, c := range counts {
		n := 0
		_, _ = fmt.Sscan(c, &n) // what is no number is none
		total += n
	}
	return fmt.Sprint(total)
}
