//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/starve"
	"github.com/coppice-run/coppice/test/testpython"
)

// marker is the variable by which a script finds the processes that its
// commands started: the filter lets PI_ names through to kernels.
const marker = "PI_COPPICE_TEST_MARK"

// patience bounds every wait of a script.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"coppice": func() {
		code := cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
		starve.Note()
		os.Exit(code)
	}})
}

// TestScripts runs the command as a user does, with real kernels. The scripts
// are in test/scripts; besides testscript's own commands they know
//
//	exits CODE COMMAND [ARG]...          runs a command and wants its exit code
//	signals SIGNAL:FILE[,...] CODE COMMAND [ARG]...
//	                                     sends a signal when a file appears
//	terminal STEPS CODE COMMAND [ARG]...
//	                                     runs a command on a terminal and does what
//	                                     the lines of a file say: "< TEXT" waits until
//	                                     that is shown, "> TEXT" types it
//	json FILE PATH VALUE                 wants a value in a JSON object; PATH
//	                                     is cells.0.title; len is a length
//	gone                                 wants no process to be left
//
// and the condition [external]: kernels are those of a server that is there. The backend
// of commands for which it does not matter is $BACKEND: the runner, in the full run, and
// on such servers, what a user has who names none.
// FILE stdout is the output of the last command.
func TestScripts(t *testing.T) {
	p := params(t, nil)
	all, err := filepath.Glob(filepath.Join(scriptDir, "*.txtar"))
	require.NoError(t, err)
	for _, file := range all {
		if full || !slices.Contains(elsewhere, strings.TrimSuffix(filepath.Base(file), ".txtar")) {
			p.Files = append(p.Files, file)
		}
	}
	testscript.Run(t, p)
}

var full = os.Getenv("COPPICE_TEST_FULL") != ""

// elsewhere are the scripts that run on a server which is there, see
// TestScriptsOnExternalServers, and on gateways of their own, which take seconds to
// start, in the full run only.
var elsewhere = []string{"json", "pipe", "events"}

var scriptDir = filepath.Join("..", "..", "test", "scripts")

// params are for scripts whose environment is extended by env, so that the
// condition external holds when it names a gateway that somebody else runs.
func params(t *testing.T, env map[string]string) testscript.Params {
	t.Helper()
	python := testpython.Path(t)
	clients, err := filepath.Abs(filepath.Join("..", "..", "clients"))
	require.NoError(t, err)
	return testscript.Params{
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("PYTHON", python)
			e.Setenv("CLIENTS", clients)
			e.Setenv("BACKEND", "auto")
			if !full && env[gatewayURL] == "" && os.Getenv(starve.Variable) == "" { // a gateway for each command takes seconds
				e.Setenv("BACKEND", backends.Runner)
			}
			e.Setenv("TERM", "xterm-256color")
			e.Setenv("GORACE", "atexit_sleep_ms=10") // or each command sleeps for a second at its end
			e.Setenv(marker, messages.NewID())
			if noted := os.Getenv(starve.Variable); noted != "" {
				e.Setenv(starve.Variable, noted)
			}
			for name, value := range env {
				e.Setenv(name, value)
			}
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "signals": signals, "terminal": onTerminal, "json": jsonValue, "gone": gone,
		},
		Condition: func(name string) (bool, error) {
			if name != "external" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return env[gatewayURL] != "", nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG]...")
	}
	wantCode(ts, args[0], ts.Exec(args[1], args[2:]...))
}

func wantCode(ts *testscript.TestScript, want string, err error) {
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != want {
		ts.Fatalf("the exit code is %d, expected %s", got, want)
	}
}

func signals(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: signals SIGNAL:FILE[,...] CODE COMMAND [ARG]...")
	}
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), ts.Stdout(), ts.Stderr()
	cmd.Env = os.Environ()
	for _, name := range []string{"HOME", "TERM", "WORK", marker, gatewayURL, gatewayToken, kernelUser} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for step := range strings.SplitSeq(args[0], ",") {
		name, file, _ := strings.Cut(step, ":")
		sig, ok := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": os.Kill}[name]
		if !ok {
			ts.Fatalf("unknown signal %q", name)
		}
		if !eventually(func() bool { _, err := os.Stat(ts.MkAbs(file)); return err == nil }) {
			_ = cmd.Process.Kill()
			ts.Fatalf("%s did not appear", file)
		}
		ts.Check(cmd.Process.Signal(sig))
	}
	select {
	case err := <-ended:
		wantCode(ts, args[1], err)
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		ts.Fatalf("it did not end after %s", args[0])
	}
}

// eventually asks until the answer is yes, or patience is over.
func eventually(yes func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !yes(); <-tick.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: [!] json FILE PATH VALUE")
	}
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); err != nil {
		ts.Fatalf("%s is not one JSON value: %v", args[0], err)
	}
	for name := range strings.SplitSeq(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			inner, ok := x[name]
			if !ok {
				ts.Fatalf("%s: there is no %q", args[1], name)
			}
			v = inner
		case []any:
			if name == "len" {
				v = float64(len(x))
				continue
			}
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(x) {
				ts.Fatalf("%s: there is no element %q of %d", args[1], name, len(x))
			}
			v = x[i]
		default:
			ts.Fatalf("%s: %q is below a %T", args[1], name, v)
		}
	}
	got, ok := v.(string)
	if !ok {
		text, err := json.Marshal(v)
		ts.Check(err)
		got = string(text)
	}
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %q", args[1], got)
	}
}

func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: gone")
	}
	var left []proc.Process
	if !eventually(func() bool { left = proc.WithEnv(marker, ts.Getenv(marker)); return len(left) == 0 }) {
		ts.Fatalf("processes are left: %+v", left)
	}
}
