package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sandbox is one of E2B's, as a client has it.
type sandbox struct {
	ID     string `json:"sandboxID"`
	Access string `json:"envdAccessToken"`
	node   string
}

// e2b makes a request as E2B's clients do: with the key, or with what opens a sandbox. It asks
// again while the fleet is busy with itself.
func (n *node) e2b(method, path, body string, header ...string) answer {
	n.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) { //nolint:forbidigo // between two questions to other processes
		req, err := http.NewRequestWithContext(n.t.Context(), method, n.url+path, strings.NewReader(body))
		require.NoError(n.t, err)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(n.t, err)
		data, err := io.ReadAll(resp.Body)
		require.NoError(n.t, err)
		require.NoError(n.t, resp.Body.Close())
		if resp.StatusCode != http.StatusServiceUnavailable || time.Now().After(end) {
			return answer{status: resp.StatusCode, header: resp.Header, body: string(data)}
		}
		n.t.Logf("%s %s is not answered yet: %s", method, path, data)
	}
}

// control asks with the key.
func (n *node) control(method, path, body string, header ...string) answer {
	n.t.Helper()
	return n.e2b(method, "/e2b"+path, body, append([]string{"X-API-Key", token, "Content-Type", "application/json"}, header...)...)
}

// makes a sandbox.
func (n *node) makes(body string, header ...string) (s sandbox) {
	n.t.Helper()
	a := n.control(http.MethodPost, "/v2/sandboxes", body, header...)
	require.Equal(n.t, http.StatusCreated, a.status, a.body)
	require.NoError(n.t, json.Unmarshal([]byte(a.body), &s))
	s.node = a.header.Get("Coppice-Node")
	return s
}

// inside asks for something in a sandbox, with what opens it alone.
func (n *node) inside(s sandbox, method, path, body string) answer {
	n.t.Helper()
	return n.e2b(method, "/e2b"+path, body, "E2b-Sandbox-Id", s.ID, "X-Access-Token", s.Access, "Content-Type", "application/json")
}

// lists are the names of the sandboxes that there are.
func (n *node) lists(query string) (names []string, next string) {
	n.t.Helper()
	a := n.control(http.MethodGet, "/v2/sandboxes"+query, "")
	require.Equal(n.t, http.StatusOK, a.status, a.body)
	var list []sandbox
	require.NoError(n.t, json.Unmarshal([]byte(a.body), &list))
	for _, s := range list {
		names = append(names, s.ID)
	}
	return names, a.header.Get("X-Next-Token")
}

// TestSandboxesOfE2B are one thing at each node, also at one that has none: made where there is
// room, used and ended from anywhere. With its node a sandbox is gone, and clients learn that it has
// ended.
func TestSandboxesOfE2B(t *testing.T) {
	t.Parallel()
	fleet := newNodes(t)
	fleet.more = func() []string { return []string{"--e2b", "--fleet-placement", "spread"} }
	a, b := fleet.node("a"), fleet.node("b")
	front := fleet.node("front", "--fleet-front")

	var all []sandbox
	at := map[string][]sandbox{}
	for len(at) < 2 || len(all) < 4 {
		s := front.makes(`{"metadata":{"who":"one"}}`)
		all = append(all, s)
		at[s.node] = append(at[s.node], s)
		require.Less(t, len(all), 40, "they are made at both: %v", at)
	}
	require.NotContains(t, at, front.control(http.MethodGet, "/templates", "").header.Get("Coppice-Node"), "the front has none")
	once := front.makes(`{}`, "Idempotency-Key", "k")
	require.Equal(t, once.ID, b.makes(`{}`, "Idempotency-Key", "k").ID, "it is made once, whichever node is asked")
	require.Equal(t, http.StatusNoContent, a.control(http.MethodDelete, "/sandboxes/"+once.ID, "").status)

	names, _ := a.lists("")
	require.Len(t, names, len(all))
	first, next := front.lists("?limit=3")
	rest, _ := b.lists("?limit=100&nextToken=" + next)
	require.Equal(t, names, append(first, rest...), "pages of one list, whoever is asked")

	for _, s := range all {
		for i, n := range []*node{front, a, b} {
			ran := n.inside(s, http.MethodPost, "/execute", `{"code":"n = globals().get('n', 0) + 1\nn"}`)
			require.Equal(t, http.StatusOK, ran.status, ran.body)
			require.Contains(t, ran.body, `"text":"`+string(rune('1'+i))+`"`, "it is one session")
		}
		other := all[(slices.Index(all, s)+1)%len(all)]
		stranger := front.inside(sandbox{ID: s.ID, Access: other.Access}, http.MethodPost, "/execute", `{"code":"1"}`)
		require.Equal(t, http.StatusUnauthorized, stranger.status, "what opens another one opens this one nowhere")
	}
	one := at[all[0].node][0]
	signed := func(operation string) string {
		sum := sha256.Sum256([]byte("a.txt:" + operation + "::" + one.Access))
		return "/files?" + url.Values{"path": {"a.txt"}, "signature": {"v1_" + base64.RawStdEncoding.EncodeToString(sum[:])}}.Encode()
	}
	require.Equal(t, http.StatusOK, front.e2b(http.MethodPost, signed("write"), "by address", "Content-Type", "application/octet-stream").status)
	for _, n := range []*node{front, a, b} {
		got := n.e2b(http.MethodGet, signed("read"), "")
		require.Equal(t, "by address", got.body, "an address names no sandbox, and is found all the same")
		require.Equal(t, one.node, got.header.Get("Coppice-Node"))
	}
	require.Equal(t, http.StatusUnauthorized, front.e2b(http.MethodGet, signed("read")+"x", "").status)
	require.Equal(t, http.StatusNotFound, front.control(http.MethodPost, "/v2/sandboxes", `{"templateID":"none:v1"}`).status)

	for _, n := range []*node{a, b} {
		if !strings.HasPrefix(one.node, "a-") == (n == a) {
			continue
		}
		n.signal(syscall.SIGKILL)
		<-n.gone
	}
	for _, s := range all {
		ran := front.inside(s, http.MethodPost, "/execute", `{"code":"n += 1\nn"}`)
		if s.node != one.node {
			require.Contains(t, ran.body, `"text":"4"`)
			continue
		}
		require.Equal(t, http.StatusBadGateway, ran.status, ran.body)
		require.Contains(t, ran.body, s.ID)
		require.Equal(t, http.StatusNotFound, front.control(http.MethodDelete, "/sandboxes/"+s.ID, "").status)
	}
	names, _ = front.lists("")
	require.Len(t, names, len(all)-len(at[one.node]))
	for _, name := range names {
		require.Equal(t, http.StatusNoContent, front.control(http.MethodDelete, "/sandboxes/"+name, "").status)
	}
	names, _ = front.lists("")
	require.Empty(t, names)
}
