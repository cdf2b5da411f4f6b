package forkserver_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/forkserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	require.NoError(t, err, "these tests need python3 on PATH")
	return path
}

func TestAServerFromStartToEnd(t *testing.T) {
	t.Parallel()
	s, err := forkserver.Launch(t.Context(), forkserver.Options{Python: python(t), Env: os.Environ(), Preload: []string{"json", "there_is_no_such_module"}})
	require.NoError(t, err)
	require.NotZero(t, s.PID())
	require.Regexp(t, `^3\.\d+\.\d+`, s.Python())
	select {
	case <-s.Warm():
	case <-time.After(time.Minute):
		require.FailNow(t, "the server has not imported its modules")
	}
	require.Contains(t, s.Failed(), "there_is_no_such_module")
	require.NotContains(t, s.Failed(), "json")

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, s.Close(ctx))
	<-s.Done()
	_, err = s.Fork(nil)
	require.ErrorIs(t, err, forkserver.ErrServerGone)
}

func TestWhatIsNoInterpreterIsTold(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("false")
	require.NoError(t, err)
	for _, path := range []string{sh, "/there/is/no/python"} {
		_, err := forkserver.Launch(t.Context(), forkserver.Options{Python: path, Env: os.Environ()})
		require.Error(t, err, path)
	}
}
