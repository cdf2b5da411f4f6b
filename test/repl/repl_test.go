//go:build linux

// Package repl_test drives `coppice repl` in a real terminal, tmux's, with real
// keys, and keeps the screens as golden files.
package repl_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

var update = flag.Bool("update", false, "write the golden files anew")

// patience is generous: other tests may have the processors.
const patience = 60 * time.Second

// terminal is one tmux server of our own.
type terminal struct {
	t      *testing.T
	socket string
}

func (m terminal) tmux(args ...string) string {
	m.t.Helper()
	out, err := exec.CommandContext(m.t.Context(), "tmux", append([]string{"-S", m.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	require.NoError(m.t, err, "tmux %v: %s", args, out)
	return string(out)
}

// keys types: names of keys as tmux knows them, and text.
func (m terminal) keys(keys ...string) {
	m.t.Helper()
	for _, k := range keys {
		m.tmux("send-keys", "-t", "repl", k)
	}
}

// text types text as it is.
func (m terminal) text(s string) { m.t.Helper(); m.tmux("send-keys", "-t", "repl", "-l", s) }

func (m terminal) screen() string {
	m.t.Helper()
	return settle(m.tmux("capture-pane", "-p", "-t", "repl"))
}

// wait waits until the screen has a text.
func (m terminal) wait(text string) {
	m.t.Helper()
	last := ""
	require.Eventually(m.t, func() bool { last = m.screen(); return strings.Contains(last, text) }, patience, 50*time.Millisecond, "waiting for %q", text)
}

// golden waits until the screen is the one that was kept.
func (m terminal) golden(name string) {
	m.t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		before := ""
		require.Eventually(m.t, func() bool {
			now := m.screen()
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
	got := m.screen()
	for got != string(want) && time.Now().Before(deadline) {
		<-time.After(50 * time.Millisecond)
		got = m.screen()
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

func TestScreens(t *testing.T) {
	python := testpython.Path(t)
	_, err := exec.LookPath("tmux")
	require.NoError(t, err, "install tmux: the screen is tested in a real terminal")
	dir := t.TempDir()
	bin := filepath.Join(dir, "coppice")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "github.com/coppice-run/coppice/cmd/coppice").CombinedOutput()
	require.NoError(t, err, "%s", out)
	sockets, err := os.MkdirTemp("", "repl") // a socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	m := terminal{t: t, socket: filepath.Join(sockets, "s")}
	work := filepath.Join(dir, "work")
	require.NoError(t, os.Mkdir(work, 0o700))
	begin := func() {
		m.tmux("new-session", "-d", "-s", "repl", "-x", "80", "-y", "24", "-c", work,
			"env", "COPPICE_HOME="+dir, "NO_COLOR=1", "PI_COPPICE_TEST_MARK="+messages.NewID(), bin, "repl", "--backend", "runner", "--python", python)
		m.wait(">>>")
	}
	begin()
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", m.socket, "kill-server").Run() })

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

	m.text("while True: pass")
	m.keys("Enter", "Enter")
	m.wait("running")
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
	gone := func() bool {
		return exec.CommandContext(t.Context(), "tmux", "-S", m.socket, "has-session", "-t", "repl").Run() != nil
	}
	require.Eventually(t, gone, patience, 50*time.Millisecond, "Ctrl-C twice leaves")

	begin() // what was run is remembered
	m.keys("Up", "Up")
	m.wait(">>> name = input('who? ')")
	m.keys("C-c", "C-d")
	require.Eventually(t, gone, patience, 50*time.Millisecond, "Ctrl-D leaves")
}
