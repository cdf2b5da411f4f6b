//go:build linux

package repl_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/terminal"
	"github.com/coppice-run/coppice/test/testpython"
)

// told is what the moving picture of the README has one type, and what must then be seen.
var told = []struct{ typed, seen string }{
	{"# coppice serve runs in another terminal", ""},
	{"coppice run --session chat -c 'prices = [3, 4, 5]'", "✓"},
	{"coppice run --session chat -c 'sum(prices) / len(prices)'", "4.0"},
	{"coppice run --session chat -c 'import os; os.kill(os.getpid(), 9)'", "state lost"},
	{"coppice run --session chat -c '\"prices\" in dir()'", "new kernel"},
}

const (
	prompt = "$ "
	// How long things are seen: what is typed at once, what a command has said, the end.
	typing, reading, ending = 110 * time.Millisecond, 1600 * time.Millisecond, 4 * time.Second
	atOnce                  = 3 // letters
)

// TestMovingPicture tells the story of the moving picture of the README to a shell in a real
// terminal, and holds that the commands still say it. With -update it draws the picture anew.
func TestMovingPicture(t *testing.T) {
	t.Parallel()
	python := testpython.Path(t)
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	require.NoError(t, os.Symlink(command, filepath.Join(bin, "coppice")))
	environment := []string{"COPPICE_HOME=" + dir, "PI_COPPICE_TEST_MARK=" + messages.NewID(), "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "PS1=" + prompt, "ENV="}

	server := exec.CommandContext(context.Background(), command, "serve", "--addr", "127.0.0.1:0", "--backend", "runner", "--python", python, "--json")
	server.Dir, server.Env = dir, append(os.Environ(), environment...)
	said, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	_, err = io.ReadFull(said, make([]byte, 1)) // its line says that it serves
	require.NoError(t, err)

	m := driver{t: t, screen: &own{t: t}}
	shell := m.screen.(*own)
	f := film{width: 76, height: 20}
	m.begin(dir, f.width, f.height, append(append([]string{"env", "-u", "NO_COLOR"}, environment...), "sh", "-i")...)
	ready := func(seen string) {
		require.Eventually(t, func() bool {
			now := shell.look()
			return strings.Contains(now, seen) && strings.HasSuffix(strings.TrimRight(now, "\n"), "\n"+strings.TrimRight(prompt, " ")) || seen == "" && strings.TrimSpace(now) == "$"
		}, patience, fast, "waiting for %q and a prompt", seen)
	}
	ready("")
	f.add(withCursor(shell.term.Cells()), 6*typing)
	for _, step := range told {
		before := strings.TrimRight(shell.look(), "\n")
		for from := 0; from < len(step.typed); from += atOnce {
			m.text(step.typed[from:min(from+atOnce, len(step.typed))])
			soFar := before + " " + step.typed[:min(from+atOnce, len(step.typed))]
			require.Eventually(t, func() bool { return strings.TrimRight(shell.look(), "\n") == strings.TrimRight(soFar, " ") }, patience, fast, soFar)
			f.add(withCursor(shell.term.Cells()), typing)
		}
		f.add(withCursor(shell.term.Cells()), 4*typing)
		m.keys("Enter")
		ready(step.typed)
		ready(step.seen)
		f.add(withCursor(shell.term.Cells()), reading)
	}
	f.add(withCursor(shell.term.Cells()), ending)
	story := settle(shell.look())
	m.keys("C-d")
	require.Eventually(t, m.ended, patience, fast)

	file := filepath.Join("testdata", "picture_moving.golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(story), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join("pictures", "moving.svg"), f.svg("Commands that share a session of a server: variables stay from one to the next; one that kills its kernel is told so, and so is the one after it"), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), story))
}

// withCursor shows where one would type: behind the last thing on the screen.
func withCursor(rows [][]terminal.Cell) [][]terminal.Cell {
	for _, row := range slices.Backward(rows) {
		for x := len(row) - 3; x >= 0; x-- {
			if strings.TrimSpace(row[x].Text) == "" {
				continue
			}
			if row[x].Text == "$" {
				x++ // behind the blank of the prompt
			}
			row[x+1] = terminal.Cell{Text: "▌", Dim: true}
			return rows
		}
	}
	return rows
}
