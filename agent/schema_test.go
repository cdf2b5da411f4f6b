package agent_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// tools returns every tool of every style, by name.
func tools(t *testing.T, o agent.Options) map[string]agent.Tool {
	t.Helper()
	host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Bash: true, Env: []string{"PI_PYTHON_SKIP_CHECK=1"}})
	require.NoError(t, err)
	t.Cleanup(func() { host.Shutdown(t.Context()) })
	all := map[string]agent.Tool{}
	for _, style := range []agent.Style{agent.StylePython, agent.StyleEval, agent.StyleREPL} {
		o.Style = style
		list, err := agent.Tools(host, o)
		require.NoError(t, err)
		for _, tool := range list {
			all[tool.Name] = tool
		}
	}
	return all
}

// The schemas are valid, and agree with what the tools take.
func TestToolSchemas(t *testing.T) {
	all := tools(t, agent.Options{SessionArgument: true})
	require.Len(t, all, 5)
	for name, rows := range map[string]map[string]bool{
		"python": {
			`{"cells":[]}`: true,
			`{"cells":[{"code":"1"}],"timeout":1.5,"reset":true,"cwd":".","session":"a"}`: true,
			`{"cells":[{"code":"1","title":"t"}]}`:                                        true,
			`{}`:                                                                          false,
			`{"cells":[{"title":"t"}]}`:                                                   false,
			`{"cells":[{"code":1}]}`:                                                      false,
			`{"cells":[{"code":"1","x":1}]}`:                                              false,
			`{"cells":"1"}`:                                                               false,
			`{"cells":[],"timeout":"1"}`:                                                  false,
			`{"cells":[],"what":1}`:                                                       false,
			`{"cells":[{"code":null}]}`:                                                   false,
			`{"cells":[{"code":"1"}]} {}`:                                                 false,
			`{"cells":[{"code":"1"}],"reset"`:                                             false,
			`[]`:                                                                          false,
		},
		"eval": {
			`{"cells":[{"language":"py","code":"1","timeout":3,"reset":true}]}`: true,
			`{"cells":[]}`: false,
			`{"cells":[{"language":"js","code":"1"}]}`:  false,
			`{"cells":[{"code":"1"}]}`:                  false,
			`{"cells":[{"language":"py","code":true}]}`: false,
		},
		"execute_code": {
			`{"code":"1","timeout_seconds":3}`: true,
			`{}`:                               false,
			`{"code":1}`:                       false,
		},
		"reset_repl": {`{}`: true, `{"x":1}`: false},
		"bash":       {`{"command":"true"}`: true, `{}`: false, `{"command":["true"]}`: false},
	} {
		tool := all[name]
		require.NotEmpty(t, tool.Description)
		var s jsonschema.Schema
		require.NoError(t, json.Unmarshal(tool.Schema, &s))
		r, err := s.Resolve(nil)
		require.NoError(t, err)
		for args, good := range rows {
			var v any
			if json.Unmarshal([]byte(args), &v) == nil {
				require.Equal(t, good, r.Validate(v) == nil, "%s %s by its schema", name, args)
			}
			if good {
				continue // test/integration runs these
			}
			_, err := tool.Call(t.Context(), agent.Call{Arguments: json.RawMessage(args)})
			var bad *agent.Error
			require.ErrorAs(t, err, &bad, "%s %s", name, args)
			require.Equal(t, name, bad.Tool)
			require.NotEmpty(t, bad.Problem)
		}
	}
}

func TestToolErrorsNameThePath(t *testing.T) {
	all := tools(t, agent.Options{})
	for _, row := range []struct{ tool, args, says string }{
		{"python", `{"cells":[{"code":"1"},{"code":2}]}`, "python: cells[1].code: is a JSON number; it must be a string"},
		{"python", `{"cells":["print(1)"]}`, "python: cells[0]: is a JSON string; it must be an object"},
		{"python", `{"cells":"[{\"code\":\"1\"}]"}`, "python: cells: is a JSON string; it must be a list"},
		{"python", `{"timeout":1,"cells":[{"title":"a \" , [{","code":"1"}, {"code":["x"]}]}`, "python: cells[1].code: is a JSON array; it must be a string"},
		{"python", `{"cells":[{"code":"1"}],"reset":{"a":[1]}}`, "python: reset: is a JSON object; it must be true or false"},
		{"eval", `{"cells":[{"language":"py","code":"1","timeout":"1"}]}`, "eval: cells[0].timeout: is a JSON string; it must be a number"},
		{"python", `{"cells":[{"code":"1"},{}]}`, "python: cells[1].code: is missing; pass the Python code as a string"},
		{"python", `{"cells":[],"cwd":"/no/such/place"}`, "python: cwd: Working directory does not exist: /no/such/place; make it, or name another folder"},
		{"python", `{"cells":[],"session":"a"}`, `python: there is no argument "session"; see the tool's schema`},
		{"python", `7`, "python: the arguments are a JSON number; they must be an object"},
		{"bash", `{"command":"  "}`, "bash: command: is missing; pass the shell command as a string"},
		{"bash", `{"command":"a\u0000b"}`, "bash: command: holds a NUL character, which no shell can take"},
		{"eval", `{"cells":[{"language":"js","code":"1"}]}`, `eval: cells[0].language: "js" is not available in this session; pass language: "py"`},
	} {
		_, err := all[row.tool].Call(t.Context(), agent.Call{Arguments: json.RawMessage(row.args), Session: messages.SessionKey{Session: "one"}})
		require.EqualError(t, err, row.says)
	}
}

// TestAToolNeedsASession: a host that forgets whose state a call uses is told, and
// nothing is run in a session that others have; what has no state needs none.
func TestAToolNeedsASession(t *testing.T) {
	dir := t.TempDir()
	all := tools(t, agent.Options{SessionArgument: true, Notebooks: true})
	for name, args := range map[string]string{
		"python": `{"cells":[]}`, "eval": `{"cells":[{"language":"py","code":"1"}]}`, "execute_code": `{"code":"1"}`,
		"reset_repl": `{}`, "bash": `{"command":"true"}`, "notebook_run": `{"path":"a.ipynb"}`,
	} {
		if name == "notebook_run" {
			_, err := all["notebook_edit"].Call(t.Context(), agent.Call{Arguments: json.RawMessage(`{"path":"a.ipynb","edits":[{"action":"insert","source":"1"}]}`), Session: messages.SessionKey{Cwd: dir}})
			require.NoError(t, err, "a file is nobody's session")
		}
		for _, session := range []string{"", `,"session":"mine"`} {
			with := strings.Replace(strings.TrimSuffix(args, "}")+session+"}", "{,", "{", 1)
			_, err := all[name].Call(t.Context(), agent.Call{Arguments: json.RawMessage(with), Session: messages.SessionKey{Cwd: dir}})
			require.ErrorIs(t, err, agent.ErrNoSession, "%s %s", name, with)
		}
	}
}

func TestToolModes(t *testing.T) {
	for _, row := range []struct {
		env  []string
		mode agent.Mode
		bash bool
		want []string
	}{
		{nil, "", true, []string{"python", "bash"}},
		{nil, "", false, []string{"python"}},
		{[]string{"PI_PY=0"}, "", true, []string{"bash"}},
		{[]string{"PI_PY=bash"}, "", true, []string{"bash"}},
		{[]string{"PI_PY=PY"}, "", true, []string{"python"}},
		{[]string{"PI_PY=mix"}, "", true, []string{"python", "bash"}},
		{[]string{"PI_PY=what"}, "", true, []string{"python", "bash"}},
		{[]string{"PI_PY=0"}, agent.ModePython, true, []string{"python"}},
	} {
		host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Bash: row.bash, Env: append([]string{"PI_PYTHON_SKIP_CHECK=1"}, row.env...)})
		require.NoError(t, err)
		list, err := agent.Tools(host, agent.Options{Mode: row.mode})
		require.NoError(t, err)
		names := []string{}
		for _, tool := range list {
			names = append(names, tool.Name)
		}
		require.Equal(t, row.want, names, "%+v", row)
		_, err = agent.Tools(host, agent.Options{Mode: "all"})
		require.ErrorIs(t, err, coppice.ErrOptions)
		_, err = agent.Tools(host, agent.Options{Style: "odd"})
		require.ErrorIs(t, err, coppice.ErrOptions)
		host.Shutdown(t.Context())
	}
	_, err := agent.Tool{Name: "x"}.Call(t.Context(), agent.Call{})
	require.Error(t, err)
}

// TestToolsWithoutPython gives bash alone and says why, to programs and to models;
// a host without bash keeps its Python tool.
func TestToolsWithoutPython(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, backend := range []string{backends.Runner, backends.Gateway, "auto"} {
		host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: backends.Named(backend), Bash: true, Python: none, Env: []string{}})
		require.NoError(t, err)
		for _, asked := range []agent.Mode{"", agent.ModeBoth, agent.ModePython} {
			mode, why, err := agent.ModeOf(t.Context(), host, agent.Options{Mode: asked})
			require.NoError(t, err)
			require.Equal(t, agent.ModeBash, mode)
			require.Contains(t, why, none)
			list, err := agent.Tools(host, agent.Options{Mode: asked})
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, "bash", list[0].Name)
			require.Contains(t, list[0].Description, "There is no tool for Python in this session: python is not available: ")
		}
		require.ErrorIs(t, host.CheckPython(t.Context()), coppice.ErrNoPython)
		host.Shutdown(t.Context())
	}
	host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Python: none, Env: []string{}})
	require.NoError(t, err)
	list, err := agent.Tools(host, agent.Options{})
	require.NoError(t, err)
	require.Equal(t, "python", list[0].Name)
	host.Shutdown(t.Context())
}
