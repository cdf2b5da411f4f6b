//go:build linux

// Package repl_test drives `coppice repl` in real terminals, tmux's and one of
// package terminal, with real keys, and keeps the screens as golden files.
package repl_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/gobuild"
	"github.com/coppice-run/coppice/test/terminal"
	"github.com/coppice-run/coppice/test/testpython"
)

var update = flag.Bool("update", false, "write the golden files anew")

// patience is generous: other tests may have the processors.
const (
	patience = 3 * time.Minute
	fast     = 50 * time.Millisecond
)

// screen is a terminal in which the command runs.
type screen interface {
	// begin starts a command in a terminal of that size; ended says whether it
	// has ended.
	begin(dir string, width, height int, command ...string)
	ended() bool
	// press presses keys: names of them as tmux has them. text types text.
	press(keys ...string)
	text(s string)
	// look returns what is on the screen.
	look() string
}

// tmux is one server of our own.
type tmux struct {
	t      *testing.T
	socket string
}

func (m tmux) run(args ...string) string {
	m.t.Helper()
	out, err := exec.CommandContext(m.t.Context(), "tmux", append([]string{"-S", m.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	require.NoError(m.t, err, "tmux %v: %s", args, out)
	return string(out)
}

func (m tmux) begin(dir string, width, height int, command ...string) {
	m.t.Helper()
	m.run(append([]string{"new-session", "-d", "-s", "repl", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "-c", dir}, command...)...)
}

func (m tmux) ended() bool {
	return exec.CommandContext(m.t.Context(), "tmux", "-S", m.socket, "has-session", "-t", "repl").Run() != nil
}

func (m tmux) press(keys ...string) {
	m.t.Helper()
	for _, k := range keys {
		m.run("send-keys", "-t", "repl", k)
	}
}

func (m tmux) text(s string) { m.t.Helper(); m.run("send-keys", "-t", "repl", "-l", s) }
func (m tmux) look() string  { m.t.Helper(); return m.run("capture-pane", "-p", "-t", "repl") }

// own is a terminal of this process.
type own struct {
	t    *testing.T
	term *terminal.Terminal
}

func (m *own) begin(dir string, width, height int, command ...string) {
	m.t.Helper()
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...) // Close ends it, and it ends its kernels
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TERM=screen", "COLORTERM=truecolor")
	term, err := terminal.Start(cmd, width, height)
	require.NoError(m.t, err)
	m.t.Cleanup(term.Close)
	m.term = term
}

func (m *own) ended() bool {
	select {
	case <-m.term.Ended():
		require.NoError(m.t, m.term.Err())
		return true
	default:
		return false
	}
}

func (m *own) press(names ...string) { m.t.Helper(); require.NoError(m.t, m.term.Press(names...)) }
func (m *own) text(s string)         { m.t.Helper(); require.NoError(m.t, m.term.Type(s)) }

func (m *own) look() string {
	m.t.Helper()
	require.Empty(m.t, m.term.Unknown(), "sequences that the screen of the test does not know")
	return m.term.Text()
}

// driver types into a screen and compares what it shows.
type driver struct {
	t *testing.T
	screen
}

func (m driver) keys(keys ...string) { m.t.Helper(); m.press(keys...) }
func (m driver) now() string         { m.t.Helper(); return settle(m.look()) }

// wait waits until the screen has a text.
func (m driver) wait(text string) {
	m.t.Helper()
	last := ""
	deadline := time.Now().Add(patience)
	for last = m.now(); !strings.Contains(last, text); last = m.now() {
		require.True(m.t, time.Now().Before(deadline), "waiting for %q on\n%s", text, last)
		<-time.After(20 * time.Millisecond)
	}
}

// golden waits until the screen is the one that was kept.
func (m driver) golden(name string) {
	m.t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		before := ""
		require.Eventually(m.t, func() bool {
			now := m.now()
			same := now == before
			before = now
			return same
		}, patience, 700*time.Millisecond)
		require.NoError(m.t, os.WriteFile(file, []byte(before), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(m.t, err)
	deadline := time.Now().Add(patience)
	got := m.now()
	for got != string(want) && time.Now().Before(deadline) {
		<-time.After(fast)
		got = m.now()
	}
	require.Empty(m.t, cmp.Diff(string(want), got))
}

var (
	duration = regexp.MustCompile(`\d+(\.\d+)? (µs|ms|s|min)\b`)
	size     = regexp.MustCompile(`\d+(\.\d+)? [KMG]iB`)
	process  = regexp.MustCompile(`pid \d+`)
	// cut is the end of the status line: how much fits depends on the numbers.
	cut     = regexp.MustCompile(`(?m)  │ .*$`)
	spaces  = regexp.MustCompile(`(?m) +$`)
	folder  = regexp.MustCompile(`default@\S+`)
	columns = regexp.MustCompile(` {2,}(idle|busy)`)
)

// settle takes out what differs from run to run.
func settle(screen string) string {
	screen = duration.ReplaceAllString(screen, "N ms")
	screen = size.ReplaceAllString(screen, "N MiB")
	screen = process.ReplaceAllString(screen, "pid N")
	screen = cut.ReplaceAllString(screen, "  │")
	screen = columns.ReplaceAllString(screen, "  $1")
	screen = folder.ReplaceAllString(screen, "default@FOLDER ")
	return spaces.ReplaceAllString(screen, "")
}

// command is the program, made by TestMain.
var command string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "repl")
	if err == nil {
		command, err = gobuild.Coppice(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// TestScreens goes through all that the screen does, in tmux, and in the
// terminal of the tests: both show the same.
func TestScreens(t *testing.T) {
	t.Parallel()
	python := testpython.Path(t)
	t.Run("own", func(t *testing.T) {
		t.Parallel()
		tour(t, &own{t: t}, python)
	})
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Logf("there is no tmux (%v): the tour went through the terminal of the tests alone", err)
		return
	}
	t.Run("tmux", func(t *testing.T) {
		t.Parallel()
		sockets, err := os.MkdirTemp("", "repl") // a socket's path must be short
		require.NoError(t, err)
		m := tmux{t: t, socket: filepath.Join(sockets, "s")}
		t.Cleanup(func() {
			_ = exec.Command("tmux", "-S", m.socket, "kill-server").Run()
			_ = os.RemoveAll(sockets)
		})
		tour(t, m, python)
	})
}

// tour is the way through all that the screen does.
func tour(t *testing.T, s screen, python string) {
	m := driver{t: t, screen: s}
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	require.NoError(t, os.Mkdir(work, 0o700))
	begin := func() {
		m.begin(work, 80, 24, "env", "COPPICE_HOME="+dir, "NO_COLOR=1", "PI_COPPICE_TEST_MARK="+messages.NewID(), command, "repl", "--backend", "runner", "--python", python)
		m.wait(">>>")
	}
	begin()
	m.text("x = 40")
	m.keys("Enter")
	m.wait("✓")
	m.text("x + ")
	m.text("2")
	m.keys("Enter")
	m.wait("42")
	m.golden("run")

	m.text("import ma")
	m.text("th")
	m.keys("Enter")
	m.wait("import math\n✓")
	m.text("math.flo")
	m.keys("Tab")
	m.wait("math.floor(")
	m.text("2.5)")
	m.keys("Enter")
	m.wait("math.floor(2.5)\n2\n✓")
	m.text("math.is")
	m.keys("Tab")
	m.wait("isqrt")
	m.golden("complete")
	m.keys("C-u")
	m.text("math.sqrt")
	m.keys("F1")
	m.wait("square root")
	m.golden("inspect")
	m.keys("C-u")

	m.text("def double(n):")
	m.keys("Enter")
	m.text("return n * 2")
	m.golden("multiline")
	m.keys("Enter", "Enter")
	m.wait("return n * 2\n✓")
	m.keys("Up", "Up", "Up") // into the block, through it, and to what was run before
	m.wait(">>> math.floor(2.5)\n default")
	m.keys("C-c", "C-l")

	m.text("for i in range(30): print('line', i)")
	m.keys("Enter", "Enter")
	m.wait("line 29\n✓")
	m.golden("collapsed")
	m.keys("C-o", "PageUp")
	m.wait("line 5")
	m.golden("expanded")
	m.keys("C-o", "C-l")

	m.text("print(1); [n for n in iter(int, 1) if n]")
	m.keys("Enter")
	m.wait("\n1\n") // it runs
	m.keys("C-c")
	m.wait("✗ cancelled")
	m.text("x")
	m.keys("Enter")
	m.wait(">>> x\n40\n✓")
	m.golden("interrupted")

	m.keys("C-l")
	m.text("name = input('who? ')")
	m.keys("Enter")
	m.wait("waiting for input")
	m.text("日本")
	m.golden("asking")
	m.keys("Enter")
	m.wait("✓")
	m.text("name, 1/0")
	m.keys("Enter")
	m.wait("ZeroDivisionError: division by zero\n✗")
	m.keys("C-t")
	m.wait("fork-server")
	m.golden("tree")
	m.keys("C-t", "C-c", "C-c")
	require.Eventually(t, m.ended, patience, fast, "Ctrl-C twice leaves")

	begin() // what was run is remembered
	m.keys("Up", "Up")
	m.wait(">>> name = input('who? ')")
	m.keys("C-c", "C-d")
	require.Eventually(t, m.ended, patience, fast, "Ctrl-D leaves")
}
