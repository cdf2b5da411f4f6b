package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testApp is an app that writes to buffers, with an environment of its own.
func testApp(t *testing.T, stdin string) (a *app, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return newApp(strings.NewReader(stdin), stdout, stderr, []string{"HOME=" + t.TempDir()}), stdout, stderr
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
		{"timeout 0", []string{"run", "-c", "1", "--timeout", "0"}, `from 1 to 600, not "0"`},
		{"timeout negative", []string{"run", "-c", "1", "--timeout", "-1"}, `from 1 to 600, not "-1"`},
		{"timeout 601", []string{"run", "-c", "1", "--timeout", "601"}, `from 1 to 600, not "601"`},
		{"timeout abc", []string{"run", "-c", "1", "--timeout", "abc"}, `from 1 to 600, not "abc"`},
		{"timeout NaN", []string{"run", "-c", "1", "--timeout", "nan"}, `from 1 to 600, not "nan"`},
		{"timeout with unit", []string{"run", "-c", "1", "--timeout", "5s"}, `from 1 to 600, not "5s"`},
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
			if tt.name == "home" {
				t.Setenv("HOME", "") // os.UserHomeDir asks the process
				env = nil
			}
			code := Main(tt.args, strings.NewReader(""), &stdout, &stderr, append(env, "PATH="+dir))
			require.Equal(t, codeUsage, code, stderr.String())
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
		`unknown command "rnu" for "coppice"; did you mean run?`:            {"rnu"},
		`there is no help about "nope"`:                                     {"help", "nope"},
		`there is no help about "exit-code"; did you mean exit-codes?`:      {"help", "exit-code"},
		`there is no help about "run nope"`:                                 {"help", "run", "nope"},
		`--shared-sessions needs --http: standard input has one client`:     {"mcp", "--shared-sessions"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, codeUsage, Main(args, strings.NewReader(""), &stdout, &stderr, nil), want)
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
	var v versionInfo
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &v))
	require.NotEmpty(t, v.Version)
	require.NotEmpty(t, v.Go)
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
	_, err = readAll(io.LimitReader(zeros{}, maxSource+5))
	require.ErrorContains(t, err, "more than 64 MiB")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestTimeout reads numbers of seconds.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 0, "1": time.Second, "600": 600 * time.Second, "1.5": 1500 * time.Millisecond, "6e1": time.Minute} {
		got, err := parseTimeout(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"0", "0.99", "600.1", "inf", "-inf", "nan", "one", " 5", "5s", "0x10p"} {
		_, err := parseTimeout(text)
		require.ErrorContains(t, err, text)
	}
}

// TestOutcomeCodes holds the contract with scripts.
func TestOutcomeCodes(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[messages.Outcome]int{
		messages.OutcomeOK: 0, messages.OutcomeError: 1, messages.OutcomeTimeout: 124, messages.OutcomeCancelled: 130,
		messages.OutcomeLost: 70, messages.OutcomeNotStarted: 70, "unheard-of": 70,
	} {
		require.Equal(t, want, outcomeCode(outcome), outcome)
	}
}

// TestEventLines writes events as lines; the last is the result itself.
func TestEventLines(t *testing.T) {
	t.Parallel()
	a, stdout, _ := testApp(t, "")
	write := a.eventWriter()
	require.NoError(t, write(messages.Stream{Position: messages.Position{Seq: 1}, Name: messages.StdoutStream, Text: "a < b\n"}))
	require.NoError(t, write(messages.Final{Position: messages.Position{Seq: 2, Cell: -1}, Result: messages.Result{Outcome: messages.OutcomeOK, Text: "a < b"}}))
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

// TestReaderGone swallows what is written after the reader has left, and says
// so once.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	require.NoError(t, r.Close())
	told := 0
	o := &output{w: w, onBroken: func() { told++ }}
	for range 3 {
		n, err := o.Write([]byte("text"))
		require.NoError(t, err)
		require.Equal(t, 4, n)
	}
	o.print("more")
	require.Equal(t, 1, told)
	full := &output{w: failing{}}
	_, err := full.Write([]byte("x"))
	require.NoError(t, err, "the command goes on")
	require.ErrorIs(t, full.failure(), io.ErrShortWrite, "its end tells")
	require.NoError(t, o.failure())
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

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

// TestStageOf says what a change in the tree means to somebody who waits.
func TestStageOf(t *testing.T) {
	t.Parallel()
	for event, want := range map[messages.Lifecycle]string{
		messages.ChildChanged{Kind: "server", Key: "kernel-gateway", To: messages.ChildStarting}: "starting the Kernel Gateway",
		messages.ChildChanged{Kind: "server", Key: "fork-server", To: messages.ChildStarting}:    "starting Python",
		messages.ChildChanged{Kind: "kernel", To: messages.ChildStarting}:                        "starting a kernel",
		messages.ChildChanged{Kind: "kernel", To: messages.ChildIdle}:                            "",
		messages.ChildChanged{Kind: "sink", To: messages.ChildStarting}:                          "",
		messages.Dropped{}: "",
	} {
		require.Equal(t, want, stageOf(event))
	}
}
