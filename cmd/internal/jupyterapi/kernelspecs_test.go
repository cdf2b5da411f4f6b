package jupyterapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/test/external"
)

// TestKernelsOfEachBackend are those of the gateway's kernelspecs, of any language, and beside
// them the runner's.
func TestKernelsOfEachBackend(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *coppice.Options) {
		o.Backend, o.Beside, o.Env = coppice.Gateway(coppice.GatewayOptions{}), coppice.Runner(coppice.RunnerOptions{}), external.WithToy(t)
	})
	var specs struct {
		Default     string
		Kernelspecs map[string]struct {
			Spec struct {
				Language string
				Name     string `json:"display_name"`
				Metadata struct{ Backend string }
			}
		}
	}
	s.rest("GET", "/api/kernelspecs", "", http.StatusOK, &specs)
	require.Equal(t, "python3", specs.Default)
	require.Equal(t, "toy", specs.Kernelspecs["toy"].Spec.Language)
	require.Equal(t, "gateway", specs.Kernelspecs["python3"].Spec.Metadata.Backend)
	require.Equal(t, "runner", specs.Kernelspecs["coppice"].Spec.Metadata.Backend)
	var missing object
	s.rest("POST", "/api/kernels", `{"name":"julia"}`, http.StatusNotFound, &missing)
	require.Contains(t, missing["reason"], "python3, toy, coppice")

	of := func(name string) *socket {
		var k object
		s.rest("POST", "/api/kernels", `{"name":"`+name+`"}`, http.StatusCreated, &k)
		require.Equal(t, name, k["name"])
		id, _ := k["id"].(string)
		s.rest("GET", "/api/kernels/"+id, "", http.StatusOK, &k)
		require.Equal(t, name, k["name"])
		return s.dial(id)
	}
	reply := func(c *socket, kind string, content object) object {
		id := c.send("shell", kind, content)
		var found object
		for _, m := range c.until(idle(id)) {
			if strings.HasSuffix(m.Header.Type, "_reply") {
				found = m.Content
			}
		}
		for found == nil { // it may come after the status
			if m := c.next(); m.Parent.ID == id && strings.HasSuffix(m.Header.Type, "_reply") {
				found = m.Content
			}
		}
		return found
	}
	said := func(c *socket, code string) string {
		var b strings.Builder
		for _, m := range c.execute(code) {
			if text, ok := m.Content["text"].(string); ok && m.Header.Type == "stream" {
				b.WriteString(text)
			}
		}
		return b.String()
	}
	toy := of("toy")
	require.Equal(t, "toy", reply(toy, "kernel_info_request", object{})["language_info"].(object)["name"])
	require.Equal(t, "1\n", said(toy, "count"), "no code of the API has run in it")
	require.Equal(t, "unknown", reply(toy, "is_complete_request", object{"code": "count"})["status"])
	require.Equal(t, "help?\n", said(toy, "help?"), "which is code here")
	answer := reply(toy, "execute_request", object{"code": "x", "user_expressions": object{"a": "1"}})
	require.Equal(t, "error", answer["user_expressions"].(object)["a"].(object)["status"])
	require.Equal(t, "4\n", said(toy, "count"))
	toy.send("shell", "comm_open", object{"comm_id": "1", "target_name": "x", "data": object{}})
	toy.until(func(m received) bool { return m.Header.Type == "comm_close" })

	runner := of("coppice")
	require.Equal(t, "python", reply(runner, "kernel_info_request", object{})["language_info"].(object)["name"])
	require.Equal(t, "True\n", said(runner, "print('__coppice__' in dir(__builtins__))"))
	require.Equal(t, "True\n", said(of("python3"), "print(get_ipython() is not None)"))
}
