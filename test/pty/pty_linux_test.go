package pty_test

import (
	"bufio"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/test/pty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTerminal(t *testing.T) {
	t.Parallel()
	tty, err := pty.Open()
	require.NoError(t, err)
	defer tty.Close()
	require.NoError(t, tty.Type("typed\n"))
	line, err := bufio.NewReader(tty.Program).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "typed\n", line)
	require.NoError(t, tty.Await("typed", time.Minute))
	echoes, err := tty.Echoes()
	require.NoError(t, err)
	require.True(t, echoes)
	require.ErrorContains(t, tty.Await("never", time.Millisecond), `does not show "never"`)
}
