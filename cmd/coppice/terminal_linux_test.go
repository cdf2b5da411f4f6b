package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coppice-run/coppice/test/terminal"
)

// onTerminal is the command "terminal", see TestScripts. What the terminal
// showed is the output of the command.
func onTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: terminal STEPS CODE COMMAND [ARG]...")
	}
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	tty, err := terminal.Open(100, 30)
	ts.Check(err)
	defer tty.Close()
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), tty.Program, tty.Program, tty.Program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = os.Environ()
	for _, name := range []string{"HOME", "TERM", "WORK", marker} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	fail := func(format string, args ...any) {
		_ = cmd.Process.Kill()
		ts.Logf("it was killed: %v", <-ended)
		ts.Fatalf(format, args...)
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		what, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch what {
		case "<":
			err = tty.Await(regexp.QuoteMeta(text), patience)
		case ">":
			// Ctrl-C is the end of what is typed: a return key after it could be
			// read as an answer before the signal is seen.
			if typed, left := strings.CutSuffix(text, "^C"); left {
				err = tty.Type(typed + "\x03")
			} else {
				err = tty.Type(text + "\n")
			}
		default:
			fail("%s: a line begins with < or >, not %q", args[0], what)
		}
		if err != nil {
			fail("%s: %v", line, err)
		}
	}
	select {
	case err = <-ended:
	case <-time.After(patience):
		fail("it did not end; the terminal shows %q", tty.Shown())
	}
	echoes, echoErr := tty.Echoes()
	ts.Check(echoErr)
	if !echoes {
		ts.Fatalf("the terminal was left without echo")
	}
	_, writeErr := ts.Stdout().Write([]byte(strings.ReplaceAll(tty.Shown(), "\r\n", "\n")))
	ts.Check(writeErr)
	wantCode(ts, args[1], err)
}
