package workspace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve is a home in which a coppice serve is said to run, whose answers are those of the
// test by "METHOD path". What was asked is returned.
func serve(t *testing.T, answers map[string]string) (home string, asked func() []string) {
	t.Helper()
	home = t.TempDir()
	var mu sync.Mutex
	var all []string // guarded by mu
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		all = append(all, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		mu.Unlock()
		answer, known := answers[r.Method+" "+r.URL.RequestURI()]
		switch {
		case !known:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":{"code":"not_found","message":"there is no ` + r.URL.Path + `"}}`
		case strings.HasPrefix(answer, "data:"):
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	data, err := json.Marshal(client.Record{URL: s.URL, Token: "t", PID: os.Getpid()})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".coppice"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".coppice", "serve.json"), data, 0o600))
	return home, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), all...)
	}
}

// run runs a command line below coppice workspace.
func run(t *testing.T, home, stdin string, args ...string) (out, told string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := Command(console.New(strings.NewReader(stdin), &stdout, &stderr, []string{"COPPICE_HOME=" + home, "NO_COLOR=1"}))
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// TestWrongLines are refused before anything is asked.
func TestWrongLines(t *testing.T) {
	home, asked := serve(t, nil)
	for line, want := range map[string]string{
		"create":                        "create wants the name of one workspace",
		"create w --label x":            `--label wants NAME=VALUE, not "x"`,
		"create w --env =x":             `--env wants NAME=VALUE`,
		"create w --quota much":         "--quota: ",
		"create w --max-files -1":       "--max-files: ",
		"create w --total-processes -1": "--total-processes: ",
		"create w --total-memory lots":  "--total-memory: ",
		"create w --end-in -5":          "must not be negative",
		"create w --pass A --pass-none": "exclude each other",
		"create w --isolation-host a.example --isolation-network":  "leave one of them out",
		"create w --isolation-host a.example --isolation-loopback": "add --isolation-host 127.0.0.1:PORT",
		"change w --label a=b --no-labels":                         "exclude each other",
		"change w --pin --unpin":                                   "exclude each other",
		"list --label =x":                                          "--label wants NAME=VALUE, or NAME",
		"put w":                                                    "put wants",
		"put w -":                                                  "standard input has no name",
		"put w - folder/":                                          "standard input has no name",
		"put w /none/at/all":                                       "no such file",
		"get w":                                                    "get wants",
		"files":                                                    "files wants",
		"exec w":                                                   "exec wants",
		"exec w -t -- true":                                        "-t wants a terminal",
		"exec w -t --detach -- true":                               "exclude each other",
		"exec w --timeout -1 -- true":                              "must not be negative",
		"exec w --env A -- true":                                   "--env wants NAME=VALUE",
	} {
		_, _, err := run(t, home, "", strings.Fields(line)...)
		require.ErrorContains(t, err, want, line)
		_, usage := errors.AsType[console.UsageError](err)
		require.True(t, usage, "%s: %T", line, err)
	}
	require.Empty(t, asked())
}

// TestWhatACommandAsks: the flags of create and change as the server gets them.
func TestWhatACommandAsks(t *testing.T) {
	home, asked := serve(t, map[string]string{"POST /api/workspaces": `{"name":"w"}`, "PATCH /api/workspaces/w": `{"name":"w"}`})
	for _, line := range []string{
		"create w --folder /srv --keep-folder --env A=b=c --pass-none --label t=d --owner me --quota 1K --max-memory 1M --max-cpu 90s --max-runtime 2m --max-files 3 --max-processes 4 --max-processors 0.5 --isolation landlock --isolation-network --end-in 8h --idle-end 60 --json",
		"create w --total-memory 2G --total-processes 60 --total-processors 1.5 --total-output 10M --isolation-private --isolation-host api.example.com --isolation-host *.example.org:8443",
		"change w --no-labels --idle-end 1h --unpin",
		"change w --label a=b",
	} {
		_, _, err := run(t, home, "", strings.Fields(line)...)
		require.NoError(t, err, line)
	}
	require.Equal(t, []string{
		`POST /api/workspaces {"name":"w","folder":"/srv","keep_folder":true,"env":{"A":"b=c"},"pass":[],"labels":{"t":"d"},"limits":{"memory_bytes":1048576,"cpu_seconds":90,"runtime_seconds":120,"files":3,"processes":4,"processors":0.5},"isolation":{"level":"landlock","network":true},"quota_bytes":1024,"lifetime":{"end_in_seconds":28800,"idle_end_seconds":60},"owner":"me"}`,
		`POST /api/workspaces {"name":"w","total":{"memory_bytes":2147483648,"processes":60,"processors":1.5,"output_bytes":10485760},"isolation":{"hosts":["api.example.com","*.example.org:8443"],"private":true}}`,
		`PATCH /api/workspaces/w {"labels":{},"lifetime":{"idle_end_seconds":3600},"pinned":false}`,
		`PATCH /api/workspaces/w {"labels":{"a":"b"}}`,
	}, asked())
}

// TestHowAProgramEnded: the exit code of exec is that of the program, or says how it was
// ended.
func TestHowAProgramEnded(t *testing.T) {
	for exit, want := range map[string]struct {
		code int
		told string
	}{
		`{"code":0}`:                         {0, ""},
		`{"code":7}`:                         {7, ""},
		`{"code":-1,"signal":"killed"}`:      {137, ""},
		`{"code":-1,"signal":"user signal"}`: {1, "ended by a signal: user signal"},
		`{"code":-1,"signal":"terminated","reason":"its time of 1s was up"}`: {143, "its time of 1s was up"},
		`{"code":0,"incomplete":"the disk was full"}`:                        {1, "the disk was full"},
	} {
		data := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
		home, asked := serve(t, map[string]string{
			"POST /api/workspaces/w/processes":          `{"id":"p1"}`,
			"POST /api/workspaces/w/processes/p1/input": `{"taken":2}`,
			"POST /api/workspaces/w/processes/p1/close": "",
			"GET /api/workspaces/w/processes/p1/events": `data: {"seq":1,"type":"stdout","data":"` + data("out") + `"}` + "\n\n" + `data: {"seq":2,"type":"stderr","data":"` + data("err") + `"}` + "\n\n" + `data: {"seq":3,"type":"end","exit":` + exit + "}\n\n",
		})
		out, told, err := run(t, home, "in", "exec", "w", "--cwd", "d", "--", "cat", "-u")
		require.Equal(t, "out", out)
		require.Equal(t, "err", told)
		require.Contains(t, asked(), `POST /api/workspaces/w/processes {"args":["cat","-u"],"cwd":"d","input":true}`)
		ended, ok := errors.AsType[*console.Exit](err)
		if want.code == 0 && want.told == "" {
			require.NoError(t, err)
			continue
		}
		require.True(t, ok, exit)
		require.Equal(t, want.code, ended.Code)
		if want.told == "" {
			require.NoError(t, ended.Err)
		} else {
			require.ErrorContains(t, ended.Err, want.told)
		}
	}
}

// TestWhatAServerCallsAFile leads nowhere but into the folder that was named.
func TestWhatAServerCallsAFile(t *testing.T) {
	for _, evil := range []string{"../../evil", "/tmp/evil-of-a-server", "d/../../../evil"} {
		name, err := json.Marshal(evil)
		require.NoError(t, err)
		home, _ := serve(t, map[string]string{
			"GET /api/workspaces/w/files/stat?path=d":          `{"path":"d","kind":"directory","mode":"0755"}`,
			"GET /api/workspaces/w/files/list?depth=-1&path=d": `{"files":[{"path":` + string(name) + `,"kind":"directory","mode":"0755"}]}`,
		})
		to := filepath.Join(t.TempDir(), "a", "b", "c")
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
		_, _, err = run(t, home, "", "get", "w", "d", to)
		require.ErrorContains(t, err, "leaves the folder", evil)
		entries, err := os.ReadDir(to)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
}

// TestAProofThatFails: what was allowed is shown, and the exit code says so.
func TestAProofThatFails(t *testing.T) {
	const proof = `{"isolation":"landlock","holds":%s,"attempts":[{"attempt":"read a file outside","state":"%s","from":"landlock","detail":"secret"},{"attempt":"read the command line of the host","state":"documented","detail":"7 bytes"}]}`
	for state, holds := range map[string]string{"allowed": "false", "refused": "true"} {
		home, _ := serve(t, map[string]string{
			"GET /api/workspaces/w": `{"name":"w"}`, "GET /api/workspaces/w/processes": `{"processes":[]}`, "POST /api/workspaces/w/prove": fmt.Sprintf(proof, holds, state),
		})
		out, _, err := run(t, home, "", "show", "w", "--prove")
		require.Regexp(t, state+" +read a file outside +landlock +secret", out)
		require.Regexp(t, "documented +read the command line of the host +no rung +7 bytes", out)
		if holds == "true" {
			require.NoError(t, err)
			require.Contains(t, out, "1 of 2 attempts were refused on the rung landlock")
		} else {
			require.ErrorContains(t, err, "the isolation landlock of w does not hold here")
		}
		out, _, err = run(t, home, "", "show", "w", "--prove", "--json")
		require.Equal(t, holds == "true", err == nil)
		require.Contains(t, out, `"proof"`)
	}
}

// TestAWorkspaceIsShownInLines: each process has one, whatever its arguments, and what was
// once is not told as several.
func TestAWorkspaceIsShownInLines(t *testing.T) {
	home, _ := serve(t, map[string]string{
		"GET /api/workspaces/w":           `{"name":"w","in_use":1,"refused":[{"host":"example.com:443","times":1},{"host":"example.org:80","times":3,"why":"the reason of the server"}],"usage":{"ends":1,"last":"memory"}}`,
		"GET /api/workspaces/w/processes": `{"processes":[{"id":"p1","pid":7,"state":"running","args":["python","-c","import time\ntime.sleep(9)","","a\u001b[2J"]}]}`,
	})
	out, _, err := run(t, home, "", "show", "w")
	require.NoError(t, err)
	require.Contains(t, out, `  p1   running  7  python -c "import time\ntime.sleep(9)" "" "a\x1b[2J"`+"\n")
	require.Contains(t, out, "refused    example.com:443, once, at last")
	require.Contains(t, out, "example.org:80, 3 times, at last")
	require.Contains(t, out, ": the reason of the server\n")
	require.Contains(t, out, "ended for a limit once, at last: memory")
	require.Contains(t, out, "one call, process or transfer goes on")
}
