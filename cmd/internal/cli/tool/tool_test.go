package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a home with a folder of tools, in which there is the tool shout.
type place struct {
	t    *testing.T
	home string
	dir  string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, home: t.TempDir()}
	p.dir = filepath.Join(p.home, "tools")
	code, _, text := p.run("", "new", "shout")
	require.Zero(t, code, text)
	return p
}

// run runs a command, and returns its exit code, standard output, and what was told
// besides with its error at the end.
func (p *place) run(stdin string, args ...string) (code int, out, told string) {
	p.t.Helper()
	return p.runWith([]string{"COPPICE_TOOLS=" + p.dir}, stdin, args...)
}

// runWith is run with other variables.
func (p *place) runWith(env []string, stdin string, args ...string) (code int, out, told string) {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := Command(console.New(strings.NewReader(stdin), &stdout, &stderr, append([]string{"COPPICE_HOME=" + p.home}, env...)))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	err := cmd.ExecuteContext(p.t.Context())
	if exit, ok := errors.AsType[*console.Exit](err); ok {
		code, err = exit.Code, exit.Err
	} else if err != nil {
		code = console.Usage
	}
	if err != nil {
		stderr.WriteString(err.Error())
	}
	return code, strings.ReplaceAll(stdout.String(), p.home, "HOME"), strings.ReplaceAll(stderr.String(), p.home, "HOME")
}

// serve is a coppice serve for the folder, whose answers are those of the test by
// "METHOD path"; another request is answered with 404.
func (p *place) serve(answers map[string]string) {
	p.t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.Method+" "+r.URL.RequestURI()]
		switch {
		case r.Method+" "+r.URL.Path == "GET /api/healthz" && !known:
			answer = `{"ok":true,"uptime_seconds":90,"warm_tools":[]}`
		case !known:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":{"code":"not_found","message":"no such tool: \"none\"","hint":"coppice tool list shows them"}}`
		case strings.HasPrefix(answer, "event:"):
			w.Header().Set("Content-Type", "text/event-stream")
		case strings.HasPrefix(answer, `{"error":{`):
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, answer)
	}))
	p.t.Cleanup(s.Close)
	data, err := json.Marshal(client.Record{URL: s.URL, Token: "t", PID: os.Getpid(), Tools: p.dir})
	require.NoError(p.t, err)
	path := filepath.Join(p.home, ".coppice", "serve.json")
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(p.t, os.WriteFile(path, data, 0o600))
}

const warm = `{"ok":true,"uptime_seconds":90,"warm_tools":[{"id":"shout","state":"idle","pid":7,"port":99,"rss_bytes":3145728,"runs":4,"pinned":true}]}`

// TestAtAServer: a server that runs for the folder is asked, and its answers shown.
func TestAtAServer(t *testing.T) {
	t.Parallel()
	const result = `{"run":"r","tool":"shout","outcome":"ok","outputs":{"result":"HELLO"},"files":["a.txt"],"artifacts":"/x","warnings":["slow"]}`
	for name, tc := range map[string]struct {
		answers map[string]string
		stdin   string
		args    []string
		code    int
		out     string
		told    string
	}{
		"list":                  {answers: map[string]string{"GET /api/tools": `[{"id":"shout","name":"Shout","status":"running","validation":"pass","pinned":true}]`}, args: []string{"list"}, out: "shout  Shout  running  pass        pinned\n"},
		"list a broken one":     {answers: map[string]string{"GET /api/tools": `[{"id":"a","name":"a","status":"failed","validation":"fail","problem":"one; two; three"}]`}, args: []string{"list"}, out: "one (and 2 more: coppice tool validate a)"},
		"list as JSON":          {answers: map[string]string{"GET /api/tools": `[{"id":"shout","name":"Shout"}]`}, args: []string{"list", "--json"}, out: `[{"id":"shout","name":"Shout","status":"","validation":"","pinned":false}]`},
		"state":                 {answers: map[string]string{"GET /api/healthz": warm}, args: []string{"state"}, out: "up for 1m30s, 1 tool warm\n"},
		"state of tools":        {answers: map[string]string{"GET /api/healthz": warm}, args: []string{"state"}, out: "3.0 MiB  4     pinned\n"},
		"state as JSON":         {answers: map[string]string{"GET /api/launcher/state": `{"cap":5,"warm":0,"memory_mb":0,"tools":[]}`}, args: []string{"state", "--json"}, out: `{"cap":5,"warm":0,"memory_mb":0,"tools":[]}`},
		"logs":                  {answers: map[string]string{"GET /api/tools/shout/logs?limit=2": `{"lines":["x","y"]}`}, args: []string{"logs", "shout", "-n", "2"}, out: "x\ny\n"},
		"logs as JSON":          {answers: map[string]string{"GET /api/tools/shout/logs": `{"lines":["x"],"live":true}`}, args: []string{"logs", "shout", "--json"}, out: `{"lines":["x"],"live":true}`},
		"pin":                   {answers: map[string]string{"POST /api/tools/shout/pin": ""}, args: []string{"pin", "shout"}, out: "shout is pinned\n"},
		"unpin":                 {answers: map[string]string{"POST /api/tools/shout/unpin": ""}, args: []string{"unpin", "shout", "--json"}, out: `{"pinned":false,"tool_id":"shout"}`},
		"pin what is not":       {args: []string{"pin", "none"}, code: 2, told: "no such tool: \"none\"\n  coppice tool list shows them"},
		"stop":                  {answers: map[string]string{"POST /api/tools/shout/stop": `{"status":"stopped","tool_id":"shout","was_running":true}`}, args: []string{"stop", "shout"}, out: "shout was stopped\n"},
		"stop what is not":      {answers: map[string]string{"POST /api/tools/shout/stop": `{"status":"stopped","tool_id":"shout"}`}, args: []string{"stop", "shout"}, out: "shout did not run\n"},
		"prewarm":               {answers: map[string]string{"POST /api/tools/shout/prewarm": `{"queued":true}`}, args: []string{"prewarm", "shout"}, out: "shout is warm, or starts\n"},
		"prewarm, no room":      {answers: map[string]string{"POST /api/tools/shout/prewarm": `{"queued":false,"reason":"no room"}`}, args: []string{"prewarm", "shout"}, code: 1, told: "shout was not started: no room"},
		"prewarm as JSON":       {answers: map[string]string{"POST /api/tools/shout/prewarm": `{"queued":false,"reason":"no room"}`}, args: []string{"prewarm", "shout", "--json"}, out: `{"queued":false,"reason":"no room"}`},
		"prewarm, it ends":      {answers: map[string]string{"POST /api/tools/shout/prewarm": `{"error":{"code":"draining","message":"the server ends"}}`}, args: []string{"prewarm", "shout"}, code: 1, told: "the server ends"},
		"run":                   {answers: map[string]string{"POST /api/tools/shout/stream": "event: done\ndata: " + result + "\n\n"}, args: []string{"run", "shout", "-i", "text=hello"}, out: "result: HELLO\nfiles in /x: a.txt\n", told: "coppice: warning: slow\n"},
		"run as JSON":           {answers: map[string]string{"POST /api/tools/shout/stream": "event: done\ndata: " + result + "\n\n"}, stdin: `{"text":"a"}`, args: []string{"run", "shout", "--inputs", "-", "--json"}, out: `"outputs":{"result":"HELLO"}`},
		"run, it fails":         {answers: map[string]string{"POST /api/tools/shout/stream": "event: done\ndata: {\"outcome\":\"error\",\"error\":{\"kind\":\"tool\",\"message\":\"it broke\",\"hint\":\"mend it\",\"stderr\":\"a\\nb\\n\"}}\n\n"}, args: []string{"run", "shout"}, code: 1, told: "coppice: it broke\n  mend it\n  standard error of the tool:\n  | a\n  | b\n"},
		"run, it is cut":        {answers: map[string]string{"POST /api/tools/shout/stream": "event: error\ndata: {}\n\n"}, args: []string{"run", "shout"}, code: 70, told: "run tool shout: the server ended during the run"},
		"stream":                {answers: map[string]string{"POST /api/tools/shout/stream": "event: output\ndata: {\"output\":\"result\",\"append\":true,\"value\":\"HE\"}\n\nevent: output\ndata: {\"output\":\"n\",\"value\":3}\n\nevent: done\ndata: " + result + "\n\n"}, args: []string{"stream", "shout"}, out: "HEn: 3\n"},
		"stream as JSON":        {answers: map[string]string{"POST /api/tools/shout/stream": "event: output\ndata: {\"output\":\"n\",\"value\":3}\n\nevent: done\ndata: " + result + "\n\n"}, args: []string{"stream", "shout", "--json"}, out: `"value":3`},
		"not the server":        {answers: map[string]string{"GET /api/tools": `[]`}, args: []string{"list", "--no-server"}, out: "shout  Shout  dormant  unchecked   \n"},
		"a server that says no": {answers: map[string]string{"GET /api/healthz": `{"ok":false}`, "GET /api/tools": `[]`}, args: []string{"list"}, out: "shout  Shout  dormant  unchecked   \n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.serve(tc.answers)
			code, out, told := p.run(tc.stdin, tc.args...)
			require.Equal(t, tc.code, code, "%s%s", out, told)
			require.Contains(t, out, tc.out)
			require.Contains(t, told, tc.told)
			if tc.code != 0 {
				require.Empty(t, out)
			}
		})
	}
}

// TestByThemselves: without a server the commands work on the folder.
func TestByThemselves(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		code  int
		out   string
		told  string
	}{
		"list":                 {args: []string{"list"}, out: "shout  Shout  dormant  unchecked   \n"},
		"list of none":         {args: []string{"list", "--tools", "/none/tools"}, out: "there are no tools in /none/tools\ncoppice tool new ID --tools /none/tools makes one\n"},
		"run none, named":      {args: []string{"run", "none", "--tools", "/none/tools"}, code: 2, told: "coppice tool list --tools /none/tools shows the tools"},
		"new again":            {args: []string{"new", "shout"}, code: 1, told: "is there already"},
		"new, badly named":     {args: []string{"new", "No_Good"}, code: 2, told: "is not in kebab-case"},
		"new without a name":   {args: []string{"new"}, code: 2, told: "new takes the id of the new tool"},
		"state":                {args: []string{"state"}, out: "nothing is warm: no coppice serve runs for this folder of tools\n"},
		"state as JSON":        {args: []string{"state", "--json"}, out: `"tools":[]`},
		"logs":                 {args: []string{"logs", "shout"}, code: 1, told: "there are no logs: no coppice serve runs"},
		"logs of none":         {args: []string{"logs", "none"}, code: 2, told: `no such tool: "none"`},
		"pin":                  {args: []string{"pin", "shout"}, out: "shout is pinned\n"},
		"pin none":             {args: []string{"pin", "none"}, code: 2, told: `no such tool: "none"`},
		"stop":                 {args: []string{"stop", "shout"}, out: "shout did not run: no coppice serve runs for this folder of tools\n"},
		"stop as JSON":         {args: []string{"stop", "shout", "--json"}, out: `{"status":"stopped","tool_id":"shout","was_running":false}`},
		"prewarm none":         {args: []string{"prewarm", "none"}, code: 2, told: `no such tool: "none"`},
		"prewarm":              {args: []string{"prewarm", "shout"}, code: 70, told: "there is no interpreter at HOME/tools/shout/.venv"},
		"run":                  {args: []string{"run", "shout"}, code: 70, told: "there is no interpreter at HOME/tools/shout/.venv"},
		"run none":             {args: []string{"run", "none"}, code: 2, told: `no such tool: "none"`},
		"run, timeout":         {args: []string{"run", "shout", "--timeout", "x"}, code: 2, told: "--timeout must be a number"},
		"run, an input":        {args: []string{"run", "shout", "-i", "nope=1"}, code: 2, told: `has no input "nope"; it has text`},
		"run, an input in all": {args: []string{"run", "shout", "--inputs", `{"nope":1}`}, code: 2, told: `the tool shout has no input "nope"; it has text`},
		"run, a wrong type":    {args: []string{"run", "shout", "--inputs", `{"text":1}`}, code: 2, told: `the input "text" of the tool shout is expected to be a string, and is a number`},
		"run, no input":        {args: []string{"run", "shout", "-i", "text"}, code: 2, told: "-i wants KEY=VALUE"},
		"run, inputs":          {args: []string{"run", "shout", "--inputs", "["}, code: 2, told: "--inputs is not a JSON object"},
		"run, no file":         {args: []string{"run", "shout", "--inputs", "@/none"}, code: 2, told: "read the inputs: "},
		"stream, no name":      {args: []string{"stream"}, code: 2, told: "stream takes the id of one tool; coppice tool list shows them"},
		"setup, which":         {args: []string{"setup"}, code: 2, told: "setup takes the id of one tool, or --all"},
		"setup, one and all":   {args: []string{"setup", "shout", "--all"}, code: 2, told: "setup takes the id of one tool, or --all"},
		"setup none":           {args: []string{"setup", "none"}, code: 2, told: `no such tool: "none"`},
		"validate, which":      {args: []string{"validate"}, code: 2, told: "validate takes the id of one tool, or --all"},
		"validate":             {args: []string{"validate", "shout"}, code: 1, out: "fail  venv_exists"},
		"validate all as JSON": {args: []string{"validate", "--all", "--json"}, code: 1, out: `"overall":"fail"`},
		"no folder":            {args: []string{"list", "--tools", "/dev/null"}, code: 2, told: "is not a folder of tools"},
		"its help":             {args: nil, out: "prewarm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, told := newPlace(t).run(tc.stdin, tc.args...)
			require.Equal(t, tc.code, code, "%s%s", out, told)
			require.Contains(t, out, tc.out)
			require.Contains(t, told, tc.told)
		})
	}
}

// TestTheFolderOfTheServer is the one that is meant where none is named.
func TestTheFolderOfTheServer(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.serve(map[string]string{"GET /api/tools": `[{"id":"of-the-server"}]`})
	for name, tc := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"none named":        {args: []string{"list"}, want: "of-the-server"},
		"not the server":    {args: []string{"list", "--no-server"}, want: "there are no tools in HOME/.coppice/tools\n"},
		"named by a flag":   {args: []string{"list", "--tools", "/none/a b"}, want: "there are no tools in /none/a b\ncoppice tool new ID --tools '/none/a b' makes one\n"},
		"named by variable": {env: []string{"COPPICE_TOOLS=/none"}, args: []string{"list"}, want: "there are no tools in /none\ncoppice tool new ID makes one\n"},
	} {
		code, out, told := p.runWith(tc.env, "", tc.args...)
		require.Zero(t, code, told)
		require.Contains(t, out, tc.want, name)
	}
}

// TestHintsNameTheFolder that was named: without it they were about another.
func TestHintsNameTheFolder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"make it with: coppice tool setup shout":                 "make it with: coppice tool setup shout --tools './my tools'",
		"coppice tool setup a-b.c; then go on":                   "coppice tool setup a-b.c --tools './my tools'; then go on",
		"coppice tool list shows the tools":                      "coppice tool list --tools './my tools' shows the tools",
		"it was not made by coppice tool setup, or not finished": "it was not made by coppice tool setup, or not finished",
	} {
		require.Equal(t, want, (&app{dir: "./my tools"}).here(text))
		require.Equal(t, text, new(app).here(text))
	}
	code, _, told := newPlace(t).runWith(nil, "", "run", "shout", "--tools", newPlace(t).dir)
	require.Equal(t, 70, code)
	require.Regexp(t, `coppice tool setup shout --tools \S+/tools\n`, told+"\n")
}

// TestCompletion offers the tools of the folder that the line names.
func TestCompletion(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, args := range [][]string{{"run"}, {"stream"}, {"setup"}, {"validate"}, {"logs"}, {"pin"}, {"unpin"}, {"stop"}, {"prewarm"}} {
		_, out, _ := p.runWith(nil, "", append(append([]string{"__complete"}, args...), "--tools", p.dir, "")...)
		require.Contains(t, out, "shout\tShout\n", args)
	}
	_, out, _ := p.runWith(nil, "", "__complete", "new", "--tools", p.dir, "")
	require.NotContains(t, out, "shout")
	_, out, _ = p.runWith(nil, "", "__complete", "run", "shout", "--tools", p.dir, "")
	require.NotContains(t, out, "shout")
}

// TestAStaleServer is not asked: it serves another folder, or runs no more.
func TestAStaleServer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*client.Record){
		"another folder": func(r *client.Record) { r.Tools += "-other" },
		"ended":          func(r *client.Record) { r.Start = "1@before" },
		"out of reach":   func(r *client.Record) { r.URL = "http://127.0.0.1:1" },
		"no address":     func(r *client.Record) { r.URL = "none" },
	} {
		p := newPlace(t)
		p.serve(map[string]string{"GET /api/tools": `[{"id":"of-the-server"}]`})
		path := filepath.Join(p.home, ".coppice", "serve.json")
		r, _, err := client.ReadRecord(path)
		require.NoError(t, err)
		change(&r)
		data, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		code, out, told := p.run("", "list")
		require.Zero(t, code, told)
		require.Contains(t, out, "shout", name)
		require.NotContains(t, out, "of-the-server", name)
	}
}

// TestInputs reads the inputs of a command line.
func TestInputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	spec := &launcher.Spec{ID: "a", Inputs: []launcher.Input{
		{Key: "text", Type: "text"}, {Key: "n", Type: "integer"}, {Key: "file", Type: "file"}, {Key: "files", Type: "file", Multiple: true},
	}}
	const encoded = `{"content_type":"application/json","data":"W10=","filename":"x.json"}`
	for name, tc := range map[string]struct {
		stdin string
		flags runFlags
		want  string
	}{
		"none":             {"", runFlags{}, `{}`},
		"values":           {"", runFlags{input: []string{"text=3", "n=3"}}, `{"text":"3","n":3}`},
		"no JSON":          {"", runFlags{input: []string{"n=three"}}, `{"n":"three"}`},
		"with signs":       {"", runFlags{input: []string{"text=a=b"}}, `{"text":"a=b"}`},
		"the last counts":  {"", runFlags{input: []string{"n=1", "n=2"}}, `{"n":2}`},
		"a file":           {"", runFlags{input: []string{"file=@" + write("x.json", "[]")}}, `{"file":` + encoded + `}`},
		"files":            {"", runFlags{input: []string{"files=@" + write("x.json", "[]"), "files=@" + write("x.json", "[]")}}, `{"files":[` + encoded + `,` + encoded + `]}`},
		"a text, with @":   {"", runFlags{input: []string{"text=@me"}}, `{"text":"@me"}`},
		"an object":        {"", runFlags{inputs: `{"n":1,"text":"a"}`, input: []string{"n=2"}}, `{"n":2,"text":"a"}`},
		"an object's file": {"", runFlags{inputs: "@" + write("in.json", `{"n":7}`)}, `{"n":7}`},
		"standard input":   {`{"n":8}`, runFlags{inputs: "-"}, `{"n":8}`},
	} {
		a := &app{Console: console.New(strings.NewReader(tc.stdin), io.Discard, io.Discard, nil)}
		got, err := a.inputs(t.Context(), spec, tc.flags)
		require.NoError(t, err, name)
		require.JSONEq(t, tc.want, string(got), name)
	}
}

// TestWhatPeopleSee of outputs, reports and words for a shell.
func TestWhatPeopleSee(t *testing.T) {
	t.Parallel()
	spec := &launcher.Spec{}
	require.NoError(t, json.Unmarshal([]byte(`[{"key":"text","type":"text"},{"key":"n","type":"number"},{"key":"s","type":"stream_text"}]`), &spec.Outputs))
	outputs := json.RawMessage(`{"n":3,"text":"two\nlines","s":"streamed","other":1}`)
	require.Equal(t, "text: two\nlines\nn: 3\ns: streamed\n", outputText(spec, outputs, false))
	require.Equal(t, "text: two\nlines\nn: 3\n", outputText(spec, outputs, true), "what was streamed was shown")
	require.Empty(t, outputText(spec, json.RawMessage(`[]`), false))
	for want, e := range map[string]messages.ToolEvent{
		"":            {},
		"ab":          {Append: true, Value: json.RawMessage(`"ab"`)},
		"ab\n":        {Append: true, Done: true, Value: json.RawMessage(`"ab"`)},
		"n: 3\n":      {Output: "n", Append: true, Value: json.RawMessage(`3`)},
		"text: all\n": {Output: "text", Value: json.RawMessage(`"all"`)},
	} {
		require.Equal(t, want, eventText(e))
	}
	require.Empty(t, new(app).errorText(nil))
	long := new(app).errorText(&messages.ToolError{Message: "m", Stderr: strings.Repeat("line\n", 30) + "last"})
	require.Equal(t, 2+shownLines, strings.Count(long, "\n"))
	require.True(t, strings.HasSuffix(long, "| last\n"))
	require.Equal(t, []string{"warn  name                      m", "      why"}, new(app).checkLines(render.Style{}, launcher.Check{Status: "warn", Name: "name", Message: "m", Details: []string{"why"}}))
	require.Equal(t, "a: fail, 2 pass, 1 fail", summary(launcher.Report{ToolID: "a", Overall: "fail", Checks: []launcher.Check{{Status: "pass"}, {Status: "fail"}, {Status: "pass"}}}))
	for word, want := range map[string]string{"plain-1.py": "plain-1.py", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "ä": "'ä'", "$HOME": "'$HOME'"} {
		require.Equal(t, want, forShell(word))
	}
	require.Empty(t, since(time.Time{}))
	require.Equal(t, "1m0s", since(time.Now().Add(-time.Minute)))
}

// TestFailure: which error is the command line's, and which the tool's.
func TestFailure(t *testing.T) {
	t.Parallel()
	plain := errors.New("plain")
	for name, tc := range map[string]struct {
		err  error
		code int // -1: left to the builder
		text string
	}{
		"none":         {nil, -1, ""},
		"plain":        {plain, -1, "plain"},
		"not there":    {&messages.ToolError{Kind: messages.ToolErrorNotFound, Message: "no such tool"}, console.Usage, "no such tool"},
		"with a hint":  {&messages.ToolError{Kind: messages.ToolErrorVenv, Message: "no venv", Hint: "make one"}, console.Raised, "no venv\n  make one"},
		"of a server":  {fmt.Errorf("ask: %w", &client.Error{Code: "not_found", Message: "no such tool", Hint: "list"}), console.Usage, "no such tool\n  list"},
		"it says no":   {&client.Error{Code: "overloaded", Message: "full"}, console.Raised, "full"},
		"decided":      {&console.Exit{Code: 70, Err: &messages.ToolError{Kind: messages.ToolErrorNotFound}}, 70, ""},
		"wrong folder": {fmt.Errorf("%w: x", launcher.ErrOptions), console.Usage, "x"},
	} {
		err := new(app).failure(tc.err)
		exit, ok := errors.AsType[*console.Exit](err)
		_, usage := errors.AsType[console.UsageError](err)
		switch {
		case tc.code == -1:
			require.Equal(t, tc.err, err, name)
		case usage:
			require.Equal(t, console.Usage, tc.code, name)
		default:
			require.True(t, ok, name)
			require.Equal(t, tc.code, exit.Code, name)
		}
		if tc.text != "" {
			require.ErrorContains(t, err, tc.text, name)
		}
	}
}
