package procs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/workspace/procs"
)

// curses is an editor for machines without vim: it shows what is typed, in the middle of
// a screen of its own, and saves it with Ctrl-S.
const curses = `
import curses, sys
def main(screen):
    curses.raw()
    text = ""
    while True:
        rows, columns = screen.getmaxyx()
        screen.erase(); screen.addstr(0, 0, "-- INSERT -- %d %d" % (rows, columns)); screen.addstr(1, 0, text); screen.refresh()
        key = screen.getch()
        if key == 27:
            open(sys.argv[1], "w").write(text + "\n"); return
        if 32 <= key < 127:
            text += chr(key)
curses.wrapper(main)
`

// TestAnEditor: an editor opens, takes text, is given another size, is read by someone who
// leaves in the middle and comes back, and saves.
func TestAnEditor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "text")
	args, save := []string{"python3", "-c", curses, file}, []string{"\x1b"}
	if vim, err := exec.LookPath("vim"); err == nil {
		args, save = []string{vim, "-u", "NONE", "-N", "-c", "set showmode", "-i", "NONE", "-n", file}, []string{"\x1b", ":wq\r"}
	}
	p, err := procs.Start(procs.Options{Args: args, Env: []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm", "HOME=" + dir}, Dir: dir, Terminal: &procs.Size{Columns: 80, Rows: 24}})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	press := func(keys string) {
		_, err := p.Write(t.Context(), []byte(keys))
		require.NoError(t, err)
	}
	at := uint64(0)
	if len(save) == 2 {
		_, at = follow(t, p, at, "text")
		press("i")
	}
	_, at = follow(t, p, at, "INSERT")
	press("hello")
	_, at = follow(t, p, at, "o") // each key may come alone
	require.NoError(t, p.Resize(procs.Size{Columns: 60, Rows: 15}))
	if len(save) == 2 {
		_, at = follow(t, p, at, "hello") // it has drawn all again: vim may drop what is typed meanwhile
	}
	press(" world")
	_, at = follow(t, p, at, "d")
	for _, keys := range save {
		press(keys)
	}
	out, last := follow(t, p, at, "")
	require.NotEmpty(t, out[procs.EventTerminal])
	exit, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, exit.Code)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "hello world\n", string(data))

	// Whoever reads all of it from the start sees the same events.
	_, again := follow(t, p, 0, "")
	require.Equal(t, last, again)
}
