//go:build linux

package jupyter_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// A kernel of our gateway prepares itself while it comes up; one that could not is
// prepared by its host, and the session is the same.
func TestKernelsPrepareThemselves(t *testing.T) {
	server := jupyter.NewServer(jupyter.ServerOptions{NoFork: true, Python: testpython.Path(t), Home: t.TempDir(), Env: os.Environ(), Start: opportunity.Starting(5*time.Minute, 0)})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, func(int) {}) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	b := jupyter.New(jupyter.Options{Server: server, Helpers: "application/x-test-status"})
	cwd := t.TempDir()
	for n, want := range []string{"built-in, True, True, False, True, True\n", "not a mapping, True, True, False, True, True\n"} {
		i := startKernel(t, b, kernel.StartOptions{Key: messages.SessionKey{Session: string(rune('a' + n)), Cwd: cwd}})
		run := func(code string) *recorder {
			t.Helper()
			rec := &recorder{}
			reply, err := i.Execute(t.Context(), kernel.CellRequest{Exec: "x", Code: code}, rec.emit)
			require.NoError(t, err)
			require.True(t, reply.OK, "%+v", reply.Error)
			return rec
		}
		rec := run("import os, sys, gc\nk = sys.modules['coppice_kernel']\n" +
			"print('built-in' if isinstance(getattr(k._code, '__self__', None), dict) else 'not a mapping', os.getcwd() in sys.path, gc.isenabled(), 'debugpy' in sys.modules,\n" +
			"      'coppice_repeat_request' in get_ipython().kernel.control_handlers, callable(read) and callable(tool.__getattr__), sep=', ')")
		require.Equal(t, want, rec.text(messages.StdoutStream))
		run("import debugpy; debugpy.configure")
		require.Empty(t, find[messages.ExecuteResult](run("6*7;")), "a semicolon suppresses the result")
		rec = &recorder{}
		reply, err := i.Execute(t.Context(), kernel.CellRequest{Exec: "x", Code: "def f():\n    1/0\nf()"}, rec.emit)
		require.NoError(t, err)
		require.Equal(t, "ZeroDivisionError", reply.Error.Name)
		require.NotZero(t, reply.Error.ErrorPlace, "the error says where it came from")
		// The next kernel finds nothing to prepare itself with.
		run("here = os.path.dirname(next(a for a in sys.orig_argv if a.endswith('kernel.py')))\nfor name in ('modules.json', 'modules.bin'):\n    p = os.path.join(here, name)\n    assert " +
			map[int]string{1: "not "}[n] + "os.path.exists(p), p\n    if os.path.exists(p): os.unlink(p)")
	}
}
