package term_test

import (
	"bufio"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/term"
	"github.com/coppice-run/coppice/test/terminal"
)

func TestHideInput(t *testing.T) {
	t.Parallel()
	tty, err := terminal.Open(100, 30)
	require.NoError(t, err)
	defer tty.Close()
	require.True(t, term.IsTerminal(tty.Program))
	require.Equal(t, 100, term.Width(tty.Program))
	lines := bufio.NewReader(tty.Program)
	read := func(want string) {
		t.Helper()
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want+"\n", line)
	}
	echoes := func(want bool) {
		t.Helper()
		got, err := tty.Echoes()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.NoError(t, tty.Type("seen\n"))
	read("seen")

	show, err := term.HideInput(tty.Program)
	require.NoError(t, err)
	echoes(false)
	require.NoError(t, tty.Type("hushX\x7f\n"))
	read("hush")

	show()
	echoes(true)
	require.NoError(t, tty.Type("again\n"))
	read("again")
	require.NoError(t, tty.Await("again", time.Minute))
	require.NotContains(t, tty.Shown(), "hush")

	again, err := term.HideInput(tty.Program)
	require.NoError(t, err)
	show() // it was called before, and does nothing now
	echoes(false)
	again()
	echoes(true)
}

func TestHideInputWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer f.Close()
	_, err = term.HideInput(f)
	require.ErrorIs(t, err, term.ErrNoEcho)
}
