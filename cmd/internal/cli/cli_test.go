package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testApp is an app that writes to buffers, with an environment of its own.
func testApp(t *testing.T, stdin string) (a *app, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return &app{Console: console.New(strings.NewReader(stdin), stdout, stderr, []string{"HOME=" + t.TempDir()})}, stdout, stderr
}

// TestUsage gives command lines that are wrong: one line says why, the next
// how to find out, and nothing was started.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing to run", []string{"run"}, "nothing to run"},
		{"two files", []string{"run", "a.py", "b.py"}, "run takes one file, not 2"},
		{"no such file", []string{"run", filepath.Join(dir, "none.py")}, "none.py"},
		{"not Python", []string{"run", write("x.sh", "ls")}, "neither a .py nor an .ipynb file"},
		{"empty file", []string{"run", write("empty.py", "\n\n")}, "has no code"},
		{"markdown only", []string{"run", write("text.py", "# %% [markdown]\n# words\n")}, "has no code"},
		{"not text", []string{"run", write("binary.py", "a\xff")}, "not UTF-8"},
		{"broken notebook", []string{"run", write("x.ipynb", "{")}, "x.ipynb"},
		{"notebook without code", []string{"run", write("y.ipynb", `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[]}`)}, "has no code"},
		{"empty input", []string{"run", "-"}, "standard input has no code"},
		{"timeout 0", []string{"run", "-c", "1", "--timeout", "0"}, `from 1 to 600, or a time such as 90s or 5m, not "0"`},
		{"timeout negative", []string{"run", "-c", "1", "--timeout", "-1"}, `or a time such as 90s or 5m, not "-1"`},
		{"timeout 601", []string{"run", "-c", "1", "--timeout", "601"}, `or a time such as 90s or 5m, not "601"`},
		{"timeout abc", []string{"run", "-c", "1", "--timeout", "abc"}, `or a time such as 90s or 5m, not "abc"`},
		{"timeout NaN", []string{"run", "-c", "1", "--timeout", "nan"}, `or a time such as 90s or 5m, not "nan"`},
		{"timeout too long", []string{"run", "-c", "1", "--timeout", "11m"}, `such as 90s or 5m, not "11m"`},
		{"python of a run", []string{"run", "-c", "1", "--python", filepath.Join(dir, "none")}, "--python"},
		{"python of a set-up", []string{"setup", "--python", filepath.Join(dir, "none")}, "--python"},
		{"python of a notebook", []string{"env", "--python", "no-such-python"}, "--python"},
		{"cwd of a run", []string{"run", "-c", "1", "--cwd", filepath.Join(dir, "none")}, "Working directory does not exist"},
		{"cwd of a server", []string{"serve", "--cwd", filepath.Join(dir, "none")}, "--cwd: Working directory does not exist"},
		{"cwd that is a file", []string{"serve", "--cwd", write("f", "")}, "--cwd: Working directory is not a directory"},
		{"cwd of mcp", []string{"mcp", "--cwd", filepath.Join(dir, "none")}, "--cwd: Working directory does not exist"},
		{"python of a server", []string{"serve", "--python", filepath.Join(dir, "none")}, "--python"},
		{"COPPICE_PY", []string{"serve", "--mcp"}, "COPPICE_PY=foo is not one of 0, bash, 1, py, mix, both"},
		{"COPPICE_PY", []string{"mcp"}, "COPPICE_PY=foo is not one of 0, bash, 1, py, mix, both"},
		{"tenants", []string{"serve", "--tenant-sessions", "3"}, "--tenant-sessions is for --listen"},
		{"no tenants", []string{"serve", "--tenant-sessions", "-1"}, "--tenant-sessions is for --listen"},
		{"checkpoints", []string{"serve", "--keep-checkpoints-for", "3h"}, "--keep-checkpoints-for is for --hibernate"},
		{"checkpoints of mcp", []string{"mcp", "--max-saved-checkpoints", "3"}, "--max-saved-checkpoints is for --hibernate"},
		{"token", []string{"serve"}, "COPPICE_TOKEN holds a control character"},
		{"token", []string{"health", "--url", "http://127.0.0.1:1"}, "COPPICE_TOKEN holds a control character"},
		{"kernel mode", []string{"run", "-c", "1", "--kernel-mode", "x"}, "--kernel-mode must be session or per-call"},
		{"two forms", []string{"run", "-c", "1", "--json", "--events"}, "--json and --events exclude each other"},
		{"backend", []string{"run", "-c", "1", "--backend", "x"}, "not one of auto, gateway, runner"},
		{"flag", []string{"run", "--bogus"}, "unknown flag: --bogus"},
		{"command", []string{"bogus"}, `unknown command "bogus"`},
		{"argument", []string{"version", "x"}, `unknown command "x" for "coppice version"`},
		{"env backend", []string{"env", "--backend", "x"}, "not one of auto, gateway, runner"},
		{"env folder", []string{"env", "--cwd", filepath.Join(dir, "none")}, "Working directory does not exist"},
		{"home", []string{"setup", "--check"}, "COPPICE_HOME"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			env := []string{"COPPICE_HOME=" + dir}
			if tt.name == "COPPICE_PY" {
				env = append(env, "COPPICE_PY=foo")
			}
			if tt.name == "token" {
				env = append(env, "COPPICE_TOKEN=a\tb")
			}
			if tt.name == "home" {
				t.Setenv("HOME", "") // os.UserHomeDir asks the process
				env = nil
			}
			code := Main(tt.args, strings.NewReader(""), &stdout, &stderr, append(env, "PATH="+dir))
			require.Equal(t, console.Usage, code, stderr.String())
			require.Empty(t, stdout.String())
			lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
			require.Len(t, lines, 2, stderr.String())
			require.Contains(t, lines[0], tt.want)
			require.True(t, strings.HasPrefix(lines[0], "coppice: "))
			require.Contains(t, lines[1], "--help' for how to use it.")
		})
	}
}

// TestMistakes says what may have been meant.
func TestMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		`unknown command "doctr" for "coppice"; did you mean doctor?`:       {"doctr"},
		`unknown command "stopp" for "coppice gateway"; did you mean stop?`: {"gateway", "stopp"},
		`unknown command "zzzzz" for "coppice"`:                             {"zzzzz"},
		`unknown flag: --timout; did you mean --timeout?`:                   {"run", "--timout", "5"},
		`unknown flag: --sess; did you mean --session?`:                     {"run", "--sess=x"},
		`invalid argument "x" for "--json" flag`:                            {"env", "--json=x"},
		`unknown command "hlep" for "coppice"; did you mean help?`:          {"hlep"},
		`unknown flag: --port; did you mean --addr?`:                        {"serve", "--port", "80"},
		`unknown flag: --host; did you mean --addr?`:                        {"serve", "--host", "::1"},
		`unknown flag: --memory; did you mean --max-memory?`:                {"run", "--memory", "1G"},
		`unknown command "rnu" for "coppice"; did you mean run?`:            {"rnu"},
		`unknown command "rum" for "coppice"; did you mean run?`:            {"rum", "-c", "1"},
		`unknown command "shwo" for "coppice notebook"; did you mean show?`: {"notebook", "shwo", "--json"},
		`unknown command "elvish" for "coppice completion"`:                 {"completion", "elvish"},
		`there is no help about "nope"`:                                     {"help", "nope"},
		`there is no help about "exit-code"; did you mean exit-codes?`:      {"help", "exit-code"},
		`there is no help about "run nope"`:                                 {"help", "run", "nope"},
		`--shared-sessions needs --http: standard input has one client`:     {"mcp", "--shared-sessions"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, console.Usage, Main(args, strings.NewReader(""), &stdout, &stderr, nil), want)
		line, _, _ := strings.Cut(stderr.String(), "\n")
		require.Equal(t, "coppice: "+want, line)
	}
	for _, topic := range topics() {
		var stdout, stderr bytes.Buffer
		require.Zero(t, Main([]string{"help", topic.Name()}, strings.NewReader(""), &stdout, &stderr, nil))
		require.Contains(t, stdout.String(), topic.Long[:40])
	}
}

// TestHelp prints help to standard output.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"help"}, {"run", "--help"}, {"demo", "-h"}} {
		var stdout, stderr bytes.Buffer
		require.Zero(t, Main(args, strings.NewReader(""), &stdout, &stderr, nil))
		require.Contains(t, stdout.String(), "Usage:")
		require.Empty(t, stderr.String())
	}
}

// TestVersion prints the version in both forms.
func TestVersion(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, Main([]string{"version"}, nil, &stdout, &stderr, nil))
	require.Regexp(t, `^coppice \S+ \(go\S+, \w+/\w+\)\n$`, stdout.String())
	stdout.Reset()
	require.Zero(t, Main([]string{"version", "--json"}, nil, &stdout, &stderr, nil))
	var v version.Info
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &v))
	require.Equal(t, version.Read(), v)
	stdout.Reset()
	require.Zero(t, Main([]string{"--version"}, nil, &stdout, &stderr, nil))
	require.Equal(t, "coppice "+v.String()+"\n", stdout.String())
}

// TestCells reads cells from every source.
func TestCells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "a.PY")
	require.NoError(t, os.WriteFile(script, []byte("import os\n\n# %% load the data\nx = 1\n\n# %% [markdown]\n# words\n\n# %%\nx\n"), 0o600))
	book := filepath.Join(dir, "b.ipynb")
	require.NoError(t, os.WriteFile(book, []byte(`{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[
		{"cell_type":"markdown","id":"a","metadata":{},"source":"# T"},
		{"cell_type":"code","id":"b","metadata":{},"execution_count":null,"outputs":[],"source":["y = 1\n","y"]},
		{"cell_type":"code","id":"c","metadata":{},"execution_count":null,"outputs":[],"source":"  "}]}`), 0o600))

	a, _, _ := testApp(t, "z = 1")
	cells, err := a.readCells(t.Context(), []string{"first"}, script)
	require.NoError(t, err)
	require.Equal(t, []messages.Cell{{Code: "first"}, {Code: "import os"}, {Title: "load the data", Code: "x = 1"}, {Code: "x"}}, cells)
	cells, err = a.readCells(t.Context(), nil, book)
	require.NoError(t, err)
	require.Equal(t, []messages.Cell{{Title: "cell 1", Code: "y = 1\ny"}}, cells)
	cells, err = a.readCells(t.Context(), nil, "-")
	require.NoError(t, err)
	require.Equal(t, []messages.Cell{{Code: "z = 1"}}, cells)
}

// TestSetup says each stage and each end in words.
func TestSetup(t *testing.T) {
	t.Parallel()
	for _, name := range []environment.StageName{
		environment.StageWaiting, environment.StageFinding, environment.StageRemoving, environment.StageCreating,
		environment.StageCollecting, environment.StageInstalling, environment.StageChecking,
	} {
		text, _ := setupStage(environment.Stage{Name: name})
		require.NotEqual(t, string(name), text)
		require.Contains(t, text, " ", "it is said in words")
	}
	text, detail := setupStage(environment.Stage{Name: environment.StageCollecting, Done: 3, Total: 4})
	require.Equal(t, "collecting packages 3 of 4", text+" "+detail)

	ready := environment.SetupResult{Dir: "/e", State: environment.Ready, Version: "3.11.7", Changed: true, Elapsed: 22 * time.Second}
	require.Equal(t, []string{"ok      /e (ready after 22 s)", "        Python 3.11.7"}, setupLines(render.Style{}, ready))
	ready.Changed = false
	require.Equal(t, "ok      /e (ready, nothing to do)", setupLines(render.Style{}, ready)[0])
	require.Equal(t, []string{"FAILED  /e (broken: it does not run)"},
		setupLines(render.Style{}, environment.SetupResult{Dir: "/e", State: environment.Unusable, Why: "it does not run"}))
}

// TestEnvLines shows what a run would use, and what is wrong.
func TestEnvLines(t *testing.T) {
	t.Parallel()
	lines := strings.Join(envLines(render.Style{}, coppice.EnvReport{
		Folders: environment.Folders{Dir: "/h/.coppice"}, GatewayURL: "http://h", BackendWhy: "none",
		Interpreter: environment.Interpreter{Problem: "nothing works", Passed: []string{"PATH"}, Withheld: []string{"TOKEN"}},
	}), "\n")
	for _, want := range []string{"backend    none", "gateway    http://h", "python     none", "1 passed to kernels", "1 withheld", "! nothing works"} {
		require.Contains(t, lines, want)
	}
	require.NotContains(t, lines, "TOKEN", "names are for --json")
}

// TestEventLines writes events as lines; the last is the result itself.
func TestEventLines(t *testing.T) {
	t.Parallel()
	a, stdout, _ := testApp(t, "")
	result, err := a.writeEvents(t.Context(), func(yield func(messages.Event, error) bool) {
		_ = yield(messages.Stream{Position: messages.Position{Seq: 1}, Name: messages.StdoutStream, Text: "a < b\n"}, nil) &&
			yield(messages.Final{Position: messages.Position{Seq: 2, Cell: -1}, Result: messages.Result{Outcome: messages.OutcomeOK, Text: "a < b"}}, nil)
	}, coppice.Request{}, runFlags{events: true}, nil)
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, result.Outcome)
	lines := strings.Split(stdout.String(), "\n")
	require.Len(t, lines, 3)
	require.JSONEq(t, `{"seq":1,"cell":0,"type":"stdout","text":"a < b\n"}`, lines[0])
	require.True(t, strings.HasPrefix(lines[1], `{"seq":2,"cell":-1,"type":"final","outcome":"ok",`), lines[1])
	require.Contains(t, lines[1], "a < b", "HTML is not escaped")
	var final map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &final))
	require.Equal(t, []any{}, final["cells"])
	require.Contains(t, final, "artifact")
}

// TestEnvironmentTopic has every variable that a program which is linked here reads, but
// for those that a tool or a kernel is given.
func TestEnvironmentTopic(t *testing.T) {
	given := []string{"PI_TOOL_BRIDGE_SESSION", "PI_TOOL_BRIDGE_TOKEN", "PI_TOOL_BRIDGE_URL", "COPPICE_TOOL_TOKEN", "COPPICE_PATH", "COPPICE_PROMPT"}
	name := regexp.MustCompile(`"((?:PI|COPPICE)_[A-Z_]+)"`)
	topic := ""
	for _, c := range topics() {
		if c.Name() == "environment" {
			topic = "\n" + c.Long
		}
	}
	root := filepath.Join("..", "..", "..")
	found := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && rel != "." || rel == "test" || rel == "bench" || rel == "examples" || rel == filepath.Join("fleet", "fleettest")):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(given, m[1]) {
				found++
				require.Contains(t, topic, m[1], rel)
				if older, ok := strings.CutPrefix(m[1], "PI_"); ok {
					require.Contains(t, topic, "\nCOPPICE_"+older, rel)
				}
			}
		}
		return err
	}))
	require.Greater(t, found, 10)
}
