package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// hostile is a name that writes the clipboard, sets the title, clears the screen,
// conceals, turns the text around and writes over what stands before it.
const hostile = "n\x1b]52;c;RVZJTA==\x07\x1b]0;T\x07\x1b[2J\u009b2J\x1b[8mx\u202ey\u2066\r\bz\x7f"

// streamed is what is left of it where code has printed it.
const streamed = "n2Jxy\r\bz"

// obeyed is what a terminal would do something about, once colours and the erasure of
// a line have been taken away.
var (
	harmlessSequence = regexp.MustCompile(`\x1b\[(?:|[0-7]|[1-9][0-9]+|[0-9;:]*;[0-9;:]*)[mK]`)
	obeyed           = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2066-\u2069]")
)

// text64 is a text as JSON has bytes.
func text64(s string) string { return `"` + base64.StdEncoding.EncodeToString([]byte(s)) + `"` }

// TestNothingHostileReachesATerminal: whatever names, titles, prompts, outputs, errors
// and files say, a command puts no control sequence on a terminal but colours, and no
// character that turns text around. Each command has a row.
func TestNothingHostileReachesATerminal(t *testing.T) {
	text := func(s string) string {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		return string(data)
	}
	h := text(hostile)
	session := `{"session":` + h + `,"cwd":` + h + `,"state":` + h + `,"pid":7,"last_exit":{"kind":` + h + `,"reason":` + h + `},"owner":` + h + `,"detail":` + h + `}`
	run := `{"id":"x1","session":` + h + `,"cwd":` + h + `,"state":"ended","outcome":` + h + `,"title":` + h + `,"cells":1}`
	event := func(members string) string { return `data: {"seq":1,"cell":0,` + members + "}\n\n" }
	events := event(`"type":"stdout","text":`+h) + event(`"type":"display","data":{"text/plain":`+h+`,"application/json":{`+h+`:`+h+`}}`) +
		event(`"type":"error","name":`+h+`,"message":`+h+`,"traceback":[`+h+`]`) + event(`"type":"input_request","id":"q","prompt":`+h) +
		event(`"type":"notice","text":`+h) +
		`data: {"seq":9,"cell":-1,"type":"final","outcome":"lost","state":"lost","reason":` + h + `,"cells":[{"index":0,"title":` + h + `,"status":"error","output":` + h + `,"error":{"name":` + h + `,"message":` + h + `,"traceback":[` + h + `]}}],"json":[` + h + `]}` + "\n\n"
	name := url.PathEscape(hostile)
	place := `{"name":` + h + `,"folder":` + h + `,"owner":` + h + `,"labels":{` + h + `:` + h + `},"isolation":` + h + `,"isolation_text":` + h + `}`
	process := `{"id":` + h + `,"args":[` + h + `,` + h + `],"state":"ended","exit":{"code":-1,"signal":` + h + `,"reason":` + h + `}}`
	entry := `{"path":` + h + `,"kind":"symlink","mode":` + h + `,"target":` + h + `,"size":1}`
	at, file := "/api/workspaces/"+name, "path="+url.QueryEscape(hostile)
	query := "cwd=" + url.QueryEscape(hostile)
	p := newPlace(t, map[string]string{
		"GET /api/sessions":                       `{"sessions":[` + session + `]}`,
		"GET /api/sessions/" + name + "?" + query: session,
		"GET /api/executions?" + query + "&session=" + url.QueryEscape(hostile): `{"executions":[` + run + `]}`,
		"POST /api/sessions/" + name + "/fork?" + query:                         `{"sessions":[{"session":` + h + `}]}`,
		"POST /api/sessions/" + name + "/reset?" + query:                        "",
		"POST /api/sessions/" + name + "/interrupt?" + query:                    `{"error":{"code":"bad_request","message":` + h + `,"hint":` + h + `}}`,
		"POST /api/executions":                                                  `{"id":"x1"}`,
		"GET /api/executions/x1/events":                                         events,
		"POST /api/executions/x1/cancel":                                        "",
		"GET /api/workspaces":                                                   `{"workspaces":[` + place + `]}`,
		"GET " + at:                                                             place,
		"PATCH " + at:                                                           place,
		"POST /api/workspaces":                                                  place,
		"DELETE " + at:                                                          `{"error":{"code":"internal","message":` + h + `,"hint":` + h + `}}`,
		"GET " + at + "/processes":                                              `{"processes":[` + process + `]}`,
		"POST " + at + "/processes":                                             process,
		"GET " + at + "/files/list?path=.":                                      `{"files":[` + entry + `],"more":true}`,
		"GET " + at + "/files/list?depth=-1&" + file:                            `{"files":[` + entry + `]}`,
		"GET " + at + "/files/stat?" + file:                                     strings.Replace(entry, "symlink", "directory", 1),
		"GET " + at + "/files?" + file:                                          hostile,
		"GET " + at + "/processes/" + name + "/events":                          `data: {"seq":1,"type":"stderr","data":` + text64(hostile) + "}\n\n" + `data: {"seq":2,"type":"stdout","data":` + text64(hostile) + "}\n\n" + `data: {"seq":3,"type":"end","exit":{"code":-1,"signal":` + h + `,"reason":` + h + `}}` + "\n\n",
		"GET /api/checkpoints":                                                  `{"checkpoints":[{"id":` + h + `,"session":` + h + `,"cwd":` + h + `}]}`,
		"GET /api/saved-checkpoints":                                            `{"checkpoints":[{"name":` + h + `,"session":` + h + `,"cwd":` + h + `,"workspace":` + h + `,"owners":[` + h + `],"python":` + h + `,"kept":[` + h + `]}]}`,
		"POST /api/sessions/" + name + "/save?" + query:                         `{"bytes":1,"kept":[` + h + `],"lost":[{"name":` + h + `,"type":` + h + `,"reason":` + h + `}],"changed":[{"name":` + h + `,"type":` + h + `,"change":` + h + `}]}`,
		"POST /api/sessions/" + name + "/restore?" + query:                      `{"at":"2026-01-01T00:00:00Z","kept":[` + h + `],"notes":[` + h + `]}`,
		"GET /api/health":                                                       `{"status":` + h + `,"version":` + h + `,"backend":` + h + `}`,
		"POST /api/fleet/drain":                                                 `{"error":{"code":"draining","message":` + h + `,"hint":` + h + `}}`,
		"GET /api/healthz":                                                      `{"ok":true,"uptime_seconds":1,"warm_tools":[]}`,
	})
	dir := filepath.Join(t.TempDir(), "d"+strings.ReplaceAll(hostile, "/", "-"))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	cell := `{"cell_type":"code","id":"a","metadata":{` + h + `:` + h + `},"execution_count":1,"source":` + h + `,"outputs":[{"output_type":"stream","name":"stdout","text":` + h + `},{"output_type":"error","ename":` + h + `,"evalue":` + h + `,"traceback":[` + h + `]},{"output_type":"execute_result","execution_count":1,"metadata":{},"data":{"text/plain":` + h + `,` + h + `:` + h + `}}]}`
	book := func(name string) string {
		return write(name, `{"cells":[`+cell+`,{"cell_type":"markdown","id":`+h+`,"metadata":{},"source":`+text("# "+hostile)+`}],"metadata":{"kernelspec":{"name":`+h+`,"display_name":`+h+`,"language":`+h+`}},"nbformat":4,"nbformat_minor":5}`)
	}
	nb, other := book("a"+hostile+".ipynb"), book("b"+hostile+".ipynb")
	script := write("s"+hostile+".py", hostile)
	write("artifacts/1.txt", hostile+"\n")
	write("artifacts/2.bin", hostile+"\n")
	t.Chdir(dir) // for what is made there
	tools := filepath.Join(dir, "tools")
	write("tools/t/tool.json", `{"id":"t","name":`+h+`,"category":`+h+`,"description":`+h+`}`)
	write("tools/"+hostile+"/tool.json", `{`+hostile)

	rows := map[string][][]string{
		"run":                   {{"--session", hostile, "--cwd", "/w", "-c", hostile}, {"--session", "a", "--cwd", "/w", "-c", hostile, "--expand"}, {"--session", "a", "--cwd", "/w", "-c", "1", "--blocks"}, {"--session", "a", "--cwd", "/w", "-c", "1", "--json"}, {"--session", "a", "--cwd", "/w", "-c", "1", "--events"}, {hostile}, {dir + "/none.py"}, {script, "--record", hostile}, {"-c", "1", "--backend", hostile}, {"--" + hostile}},
		"export":                {{nb}, {nb, "--to", hostile}, {nb, "--to", "md"}, {nb, "--to", "py"}, {hostile}},
		"repl":                  {{hostile}, {"--" + hostile}},
		"artifact list":         {{"--dir", dir + "/artifacts"}},
		"artifact show":         {{"1", "--dir", dir + "/artifacts"}, {"2", "--dir", dir + "/artifacts", "--lines", "1"}, {hostile, "--dir", dir}, {"1", "--lines", hostile}},
		"artifact path":         {{"1", "--dir", dir + "/artifacts"}, {hostile}},
		"demo":                  {{hostile}},
		"setup":                 {{hostile}, {"--check", "--dir", dir}},
		"env":                   {{"--cwd", dir + "/none"}, {"--python", hostile}},
		"doctor":                {{hostile}},
		"helpers":               {{"--backend", hostile}},
		"gateway start":         {{hostile}},
		"gateway status":        {{hostile}, {}},
		"gateway stop":          {{hostile}},
		"mcp":                   {{"--tools", hostile}, {hostile}},
		"token create":          {{"--tenant", hostile}, {"--tenant", "a", "--scope", hostile}, {"--tenant", "a", "--tokens", other}},
		"token list":            {{"--tokens", nb}, {"--tokens", hostile}, {hostile}},
		"token revoke":          {{hostile}, {"a", "--tokens", nb}},
		"serve":                 {{"--addr", hostile}, {hostile}},
		"drain":                 {{}, {hostile}},
		"top":                   {{hostile}},
		"health":                {{}, {"--json"}, {"--url", hostile}, {"--timeout", hostile}},
		"bench":                 {{"--backend", hostile}},
		"version":               {{hostile}},
		"manual":                {{hostile}, {dir + "/man", "--date", hostile}},
		"sessions list":         {{}, {"--json"}},
		"sessions show":         {{hostile}, {hostile, "--json"}},
		"sessions fork":         {{hostile}},
		"sessions logs":         {{hostile}, {hostile, "--json"}},
		"sessions close":        {{hostile}},
		"sessions interrupt":    {{hostile}},
		"sessions reset":        {{hostile}},
		"sessions hibernate":    {{hostile}, {hostile, "--json"}},
		"sessions pin":          {{hostile}},
		"sessions unpin":        {{hostile}},
		"sessions checkpoint":   {{hostile}, {hostile, "--workspace", hostile}, {hostile, "--name", hostile}},
		"sessions rewind":       {{hostile, hostile}},
		"sessions restore":      {{hostile, hostile}, {hostile, hostile, "--owner", hostile}},
		"sessions checkpoints":  {{}, {"--drop", hostile}},
		"workspace list":        {{}, {"--label", hostile}, {"--label", "="}, {"--json"}},
		"workspace show":        {{hostile}, {hostile, "--json"}},
		"workspace create":      {{hostile}, {hostile, "--label", hostile}, {hostile, "--max-memory", hostile}},
		"workspace change":      {{hostile, "--pin"}, {hostile, "--end-in", hostile}},
		"workspace end":         {{hostile}},
		"workspace files":       {{hostile}, {hostile, hostile, "-r"}},
		"workspace put":         {{hostile, hostile}, {hostile, script}, {hostile, "-", hostile}},
		"workspace get":         {{hostile, hostile}, {hostile, hostile, "-"}, {hostile, hostile, dir + "/got"}},
		"workspace exec":        {{hostile, hostile}, {hostile, "--detach", hostile}, {hostile, "-t", hostile}},
		"tool list":             {{}, {"--json"}},
		"tool new":              {{hostile}},
		"completion bash":       {{hostile}},
		"completion zsh":        {{hostile}},
		"completion fish":       {{hostile}},
		"completion powershell": {{hostile}},
	}
	seen := map[string]bool{}
	check := func(args ...string) {
		var stdout, stderr bytes.Buffer
		a := &app{Console: console.New(strings.NewReader(""), &stdout, &stderr, []string{"COPPICE_HOME=" + p.home, "COPPICE_TOOLS=" + tools, "PATH=" + hostile})}
		a.Out.Terminal, a.Err.Terminal, a.Out.Width, a.Err.Width = true, true, 100, 100
		a.execute(t.Context(), args)
		for _, shown := range []string{stdout.String(), stderr.String()} {
			// What code prints may go back in its line.
			rest := strings.ReplaceAll(harmlessSequence.ReplaceAllString(shown, ""), streamed, "")
			require.Empty(t, obeyed.FindAllString(rest, -1), "%q shows %q", args, shown)
		}
		require.NotContains(t, stdout.String()+stderr.String(), "RVZJTA==;", args)
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			walk(c)
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "coppice ")
		if cmd.HasSubCommands() || !cmd.Runnable() && !cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		forms := rows[path]
		switch {
		case strings.HasPrefix(path, "notebook "): // all of them take a file first
			forms = append(forms, []string{hostile}, []string{nb}, []string{nb, hostile}, []string{nb, "0"}, []string{nb, other}, []string{nb, other, other}, []string{nb, "0", hostile})
		case strings.HasPrefix(path, "tool ") && forms == nil:
			forms = [][]string{{hostile}, {"t"}}
		case cmd.IsAdditionalHelpTopicCommand():
			forms = [][]string{{}}
		}
		require.NotEmpty(t, forms, "%s has no row", path)
		seen[path] = true
		for _, form := range forms {
			check(append(strings.Fields(path), form...)...)
		}
	}
	root := (&app{Console: console.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, nil)}).rootCommand()
	walk(root)
	for path := range rows {
		require.True(t, seen[path], "there is no command %s", path)
	}
	check(hostile)
	check("help", hostile)
	check("--" + hostile)
}
