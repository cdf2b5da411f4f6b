package forkserver_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/forkserver"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		fmt.Fprintln(os.Stderr, play(strings.Split(role, "|")))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

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
	_, err = s.Fork(nil, nil)
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

// TestAModuleThatShadowsTheStandardLibrary: the error names the file, and that Python
// found it through PYTHONPATH.
func TestAModuleThatShadowsTheStandardLibrary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "json.py"), []byte("\nraise RuntimeError('shadow json')\n"), 0o600))
	_, err := forkserver.Launch(t.Context(), forkserver.Options{Python: python(t), Env: append(os.Environ(), "PYTHONPATH="+dir)})
	require.ErrorContains(t, err, `start the fork server: exited with code 1, saying "RuntimeError: shadow json" (`+filepath.Join(dir, "json.py")+", line 2); Python found this file through PYTHONPATH")
	require.ErrorContains(t, err, "take "+dir+" out of PYTHONPATH")
}

// TestTooFewDescriptors: a fork under a limit of open files that is too low names it.
func TestTooFewDescriptors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\nulimit -n 22\nexec '"+python(t)+"' \"$@\"\n"), 0o700))
	s, err := forkserver.Launch(t.Context(), forkserver.Options{Python: file, Env: os.Environ()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	c, err := s.Fork(nil, nil)
	require.NoError(t, err)
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		require.FailNow(t, "the fork neither failed nor ended")
	}
	require.ErrorContains(t, c.Err(), "the limit of open files is 22")
}
