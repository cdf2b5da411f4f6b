package e2b_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/test/external"
)

func TestCode(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{"envVars":{"A":"of the sandbox"}}`)
	lines := b.run(`{"code":"import sys\nprint(1)\nprint(2, file=sys.stderr)\nx = 41\nx + 1"}`)
	require.Equal(t, "1\n", of(lines, "stdout")[0]["text"])
	require.Equal(t, "2\n", of(lines, "stderr")[0]["text"])
	require.Positive(t, of(lines, "stdout")[0]["timestamp"])
	result := of(lines, "result")[0]
	require.Equal(t, "42", result["text"])
	require.Equal(t, true, result["is_main_result"])
	require.Equal(t, map[string]any{}, result["extra"])
	require.InDelta(t, 1, of(lines, "number_of_executions")[0]["execution_count"], 0)
	require.Equal(t, "end_of_execution", lines[len(lines)-1]["type"])

	require.Equal(t, "text", of(b.run(`{"code":"'text'"}`), "result")[0]["text"], "without its quotes")
	rich := of(b.run(`{"code":"class R:\n  def _repr_html_(self): return '<b>'\n  def _repr_latex_(self): return '$x$'\n  def _repr_mimebundle_(self): return {'x/y': 'z'}\nR()"}`), "result")[0]
	require.Equal(t, "<b>", rich["html"])
	require.Equal(t, "$x$", rich["latex"])
	require.Equal(t, map[string]any{"x/y": "z"}, rich["extra"])
	require.Equal(t, map[string]any{"a": 1.0}, of(b.run(`{"code":"{'a': 1}"}`), "result")[0]["json"])

	fault := of(b.run(`{"code":"1/0"}`), "error")[0]
	require.Equal(t, "ZeroDivisionError", fault["name"])
	require.Equal(t, "division by zero", fault["value"])
	require.Contains(t, fault["traceback"], "ZeroDivisionError")

	env := `import os; (os.environ.get('A'), os.environ.get('B'))`
	require.Equal(t, "('of the call', 'new')", of(b.run(`{"code":"`+env+`","env_vars":{"A":"of the call","B":"new"}}`), "result")[0]["text"])
	require.Equal(t, "('of the sandbox', None)", of(b.run(`{"code":"`+env+`"}`), "result")[0]["text"])

	indented := of(b.run(`{"code":"\n    y = 1\n    y"}`), "result")
	require.Equal(t, "1", indented[0]["text"])
}

func TestContexts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	list := func() []map[string]any {
		var v []map[string]any
		require.NoError(t, json.Unmarshal([]byte(b.inside("GET", "/contexts", "").text), &v))
		return v
	}
	require.Len(t, list(), 1)
	require.Equal(t, "python", list()[0]["language"])
	require.Equal(t, b.folder(), list()[0]["cwd"])
	require.Equal(t, http.StatusBadRequest, b.inside("POST", "/contexts", `{"cwd":"/home/user/none"}`).status)
	made := b.inside("POST", "/contexts", `{"language":"python"}`).json(t)
	id := made["id"].(string)
	require.Equal(t, made, list()[1])

	in := func(code string) []map[string]any { return b.run(`{"code":"` + code + `","context_id":"` + id + `"}`) }
	b.run(`{"code":"x = 1"}`)
	require.Equal(t, "name 'x' is not defined", of(in("x"), "error")[0]["value"], "contexts share nothing")
	in("x = 2")
	require.Equal(t, "2", of(in("x"), "result")[0]["text"])
	require.Equal(t, http.StatusOK, b.inside("POST", "/contexts/"+id+"/restart", "").status)
	require.Equal(t, "NameError", of(in("x"), "error")[0]["name"])
	require.Equal(t, "1", of(b.run(`{"code":"x"}`), "result")[0]["text"])
	require.Equal(t, http.StatusNoContent, b.inside("DELETE", "/contexts/"+id, "").status)
	require.Len(t, list(), 1)
	for what, a := range map[string]answer{
		"run":     b.inside("POST", "/execute", `{"code":"1","context_id":"`+id+`"}`),
		"restart": b.inside("POST", "/contexts/"+id+"/restart", ""),
		"remove":  b.inside("DELETE", "/contexts/"+id, ""),
		"js":      b.inside("POST", "/execute", `{"code":"1","language":"js"}`),
		"r":       b.inside("POST", "/contexts", `{"language":"r"}`),
	} {
		require.Equal(t, http.StatusNotFound, a.status, what)
		require.NotEmpty(t, a.json(t)["message"])
	}
	require.Equal(t, http.StatusBadRequest, b.inside("POST", "/execute", `{"code":"1","language":"python","context_id":"default"}`).status)
}

// TestAClientThatDisconnects interrupts its code; what comes after it does not wait.
func TestAClientThatDisconnects(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/execute", strings.NewReader(`{"code":"x = 1\nprint('on', flush=True)\nimport time; time.sleep(600)"}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	h := b.headers()
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	resp, err := s.http.Do(req)
	require.NoError(t, err)
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `"on\n"`)
	leave()
	_ = resp.Body.Close()
	require.Equal(t, "1", of(b.run(`{"code":"x"}`), "result")[0]["text"], "its variables are there")
}

// TestTheEndOfASandboxWhileItRuns breaks the stream off, by which clients ask whether it
// is there.
func TestTheEndOfASandboxWhileItRuns(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/execute", strings.NewReader(`{"code":"print('on', flush=True)\nimport time; time.sleep(600)"}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	h := b.headers()
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	resp, err := s.http.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	in := bufio.NewReader(resp.Body)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, s.control("DELETE", "/sandboxes/"+b.id, "").status)
	for err == nil {
		_, err = in.ReadString('\n')
	}
	require.ErrorContains(t, err, "unexpected EOF")
	require.Equal(t, http.StatusBadGateway, b.inside("POST", "/execute", `{"code":"1"}`).status)
}

// TestLanguages are those of the kernelspecs that the gateway has.
func TestLanguages(t *testing.T) {
	t.Parallel()
	s := serveOn(t, coppice.Options{Backend: coppice.Gateway(coppice.GatewayOptions{}), Env: external.WithToy(t)})
	b := s.make(`{}`)
	require.Equal(t, "hello\n", of(b.run(`{"code":"hello","language":"toy"}`), "stdout")[0]["text"])
	require.Equal(t, "2\n", of(b.run(`{"code":"count","language":"Toy"}`), "stdout")[0]["text"], "code of one language has one context")
	made := b.inside("POST", "/contexts", `{"language":"toy"}`).json(t)
	require.Equal(t, "toy", made["language"])
	id := made["id"].(string)
	require.Equal(t, "1\n", of(b.run(`{"code":"count","context_id":"`+id+`"}`), "stdout")[0]["text"])
	require.Equal(t, "ToyError", of(b.run(`{"code":"boom","context_id":"`+id+`"}`), "error")[0]["name"])
	require.Equal(t, http.StatusOK, b.inside("POST", "/contexts/"+id+"/restart", "").status)
	require.Equal(t, "1\n", of(b.run(`{"code":"count","context_id":"`+id+`"}`), "stdout")[0]["text"])
	var list []map[string]any
	require.NoError(t, json.Unmarshal([]byte(b.inside("GET", "/contexts", "").text), &list))
	require.Len(t, list, 3)
	require.Equal(t, "42", of(b.run(`{"code":"41 + 1"}`), "result")[0]["text"])
	refused := b.inside("POST", "/contexts", `{"language":"r"}`)
	require.Equal(t, http.StatusNotFound, refused.status)
	require.Contains(t, refused.text, "the languages are python, toy")
	require.Equal(t, http.StatusNotFound, b.inside("POST", "/execute", `{"code":"1","language":"r"}`).status)
	require.Equal(t, http.StatusNoContent, b.inside("DELETE", "/contexts/"+id, "").status)
}
