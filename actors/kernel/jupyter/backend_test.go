//go:build linux

package jupyter_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

// common is the real gateway of the tests that leave it as it is: one takes seconds to
// start. TestMain ends it.
var common struct {
	once   sync.Once
	server *jupyter.Server
	home   string
	end    context.CancelFunc
	ended  chan error
	err    error
}

// backend is on that gateway, which the first of its users starts.
func backend(t *testing.T) *jupyter.Backend {
	t.Helper()
	python := testpython.Path(t)
	common.once.Do(func() {
		if common.home, common.err = os.MkdirTemp("", "coppice-kernels-"); common.err != nil {
			return
		}
		common.server = jupyter.NewServer(jupyter.ServerOptions{Python: python, Home: common.home, Env: os.Environ(), Start: opportunity.Starting(5*time.Minute, 0)})
		ctx, end := context.WithCancel(context.Background())
		common.end, common.ended = end, make(chan error, 1)
		go func() { common.ended <- common.server.Run(ctx, func(int) {}) }() // endCommon joins it
	})
	require.NoError(t, common.err)
	return jupyter.New(jupyter.Options{Server: common.server})
}

// endCommon ends the gateway, if it was started.
func endCommon() error {
	if common.end == nil {
		return nil
	}
	common.end()
	return errors.Join(<-common.ended, os.RemoveAll(common.home))
}

func startKernel(t *testing.T, b *jupyter.Backend, o kernel.StartOptions) kernel.Interpreter {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	i, err := b.Start(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, i.Close(ctx))
	})
	return i
}

// recorder keeps what a cell emits.
type recorder struct {
	mu     sync.Mutex
	events []messages.Event
}

func (r *recorder) emit(_ context.Context, e messages.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	return nil
}

func (r *recorder) text(name messages.StreamName) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, e := range r.events {
		if s, ok := e.(messages.Stream); ok && s.Name == name {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

func find[T messages.Event](r *recorder) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []T
	for _, e := range r.events {
		if t, ok := e.(T); ok {
			found = append(found, t)
		}
	}
	return found
}

func TestOneKernelFromStartToEnd(t *testing.T) {
	b := backend(t)
	cwd := t.TempDir()
	i := startKernel(t, b, kernel.StartOptions{Key: messages.SessionKey{Session: "a", Cwd: cwd}, Env: map[string]string{"GIVEN": "at start"}})
	info := i.Info()
	require.NotEmpty(t, info.ID)
	require.NotZero(t, info.PID)
	require.True(t, strings.HasPrefix(info.Python, "3."), info.Python)
	require.Positive(t, i.RSS())
	require.NoError(t, i.Ping(t.Context()))

	run := func(code string) (kernel.CellReply, *recorder) {
		t.Helper()
		rec := &recorder{}
		reply, err := i.Execute(t.Context(), kernel.CellRequest{Exec: "x", Code: code, Env: map[string]string{"CALL": "☘"}}, rec.emit)
		require.NoError(t, err)
		return reply, rec
	}

	reply, rec := run("import os, sys\nprint(os.getcwd()); print(os.environ['GIVEN'], os.environ['CALL'])\nprint('e', file=sys.stderr)\n6*7")
	require.True(t, reply.OK)
	require.Contains(t, rec.text(messages.StdoutStream), "at start ☘")
	require.Equal(t, "e\n", rec.text(messages.StderrStream))
	results := find[messages.ExecuteResult](rec)
	require.Len(t, results, 1)
	text, _ := results[0].Data.Text(messages.MIMEPlain)
	require.Equal(t, "42", text)

	reply, rec = run("raise ValueError('boom')")
	require.False(t, reply.OK)
	require.Equal(t, "ValueError", reply.Error.Name)
	require.Len(t, find[messages.Error](rec), 1)

	reply, rec = run("input('who? ')")
	require.True(t, reply.StdinRequested)
	require.Len(t, find[messages.Notice](rec), 1)

	reply, rec = run("from IPython.display import display, clear_output\nh = display('a', display_id='d')\nclear_output(wait=True)\nh = display('b', display_id='d', update=True)")
	require.True(t, reply.OK, "%+v", reply)
	shown := find[messages.Display](rec)
	require.Len(t, shown, 2)
	require.True(t, shown[1].Update)
	require.Equal(t, "d", shown[1].DisplayID)
	require.True(t, find[messages.ClearOutput](rec)[0].Wait)

	reply, _ = run("dir()")
	require.True(t, reply.OK)
	_, rec = run("[n for n in dir() if 'coppice' in n]")
	text, _ = find[messages.ExecuteResult](rec)[0].Data.Text(messages.MIMEPlain)
	require.Equal(t, "[]", text, "the preparation left names behind")
}

// TestInterruptsReachEveryKindOfCell prints in the statement that is interrupted: IPython
// runs statements one by one, and an interrupt between two of them is in none of them.
func TestInterruptsReachEveryKindOfCell(t *testing.T) {
	b := backend(t)
	i := startKernel(t, b, kernel.StartOptions{Key: messages.SessionKey{Session: "a", Cwd: t.TempDir()}})
	for name, code := range map[string]string{
		"loop":  "while True:\n    print('go', flush=True)\n    while True: pass",
		"sleep": "import time\nif time:\n    print('go', flush=True)\n    time.sleep(100)",
		"await": "import asyncio\nif asyncio:\n    print('go', flush=True)\n    await asyncio.sleep(100)",
	} {
		t.Run(name, func(t *testing.T) {
			running := make(chan struct{})
			var once sync.Once
			go func() {
				<-running
				_ = i.Interrupt(t.Context()) // the cell's end is what the test judges by
			}()
			reply, err := i.Execute(t.Context(), kernel.CellRequest{Code: code}, func(_ context.Context, e messages.Event) error {
				if _, ok := e.(messages.Stream); ok {
					once.Do(func() { close(running) })
				}
				return nil
			})
			require.NoError(t, err)
			require.True(t, reply.Interrupted, "%+v", reply.Error)
			require.Equal(t, "Traceback (most recent call last):", reply.Error.Traceback[0])
			require.Regexp(t, `^  File "<cell \d>", line \d`, reply.Error.Traceback[1])
			require.Regexp(t, `^<cell \d>$`, reply.Error.Filename)
			require.Contains(t, reply.Error.UserTraceback, "<cell ")
		})
	}
}

func TestDeathIsToldAndClosedAfterIt(t *testing.T) {
	b := backend(t)
	i := startKernel(t, b, kernel.StartOptions{Key: messages.SessionKey{Session: "a", Cwd: t.TempDir()}})
	_, err := i.Execute(t.Context(), kernel.CellRequest{Code: "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"}, (&recorder{}).emit)
	var lost *kernel.LostError
	require.ErrorAs(t, err, &lost)
	<-i.Done()
	require.ErrorAs(t, i.Err(), &lost)
	require.Error(t, i.Ping(t.Context()))
	require.NoError(t, i.Close(t.Context()))
	require.NoError(t, i.Close(t.Context()))
}

func TestExitIsNotALoss(t *testing.T) {
	b := backend(t)
	i := startKernel(t, b, kernel.StartOptions{Key: messages.SessionKey{Session: "a", Cwd: t.TempDir()}})
	reply, err := i.Execute(t.Context(), kernel.CellRequest{Code: "get_ipython().ask_exit()"}, (&recorder{}).emit)
	require.NoError(t, err)
	require.True(t, reply.Exited)
}

func TestCloseEndsAKernelWhoseGatewayIsGone(t *testing.T) {
	server := jupyter.NewServer(jupyter.ServerOptions{Python: testpython.Path(t), Home: t.TempDir(), Env: os.Environ(), Start: opportunity.Starting(5*time.Minute, 0)})
	up, ended := make(chan int, 1), make(chan error, 1)
	go func() { ended <- server.Run(t.Context(), func(pid int) { up <- pid }) }()
	b := jupyter.New(jupyter.Options{Server: server})
	i, err := b.Start(t.Context(), kernel.StartOptions{Key: messages.SessionKey{Session: "a", Cwd: t.TempDir()}})
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(<-up, syscall.SIGKILL))
	require.ErrorContains(t, <-ended, "the gateway ended")
	<-i.Done()
	require.NoError(t, i.Close(t.Context()))
	require.False(t, proc.Alive(i.Info().PID))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = server.Endpoint(ctx, messages.SessionKey{})
	require.ErrorIs(t, err, context.DeadlineExceeded, "it waits for the next one")
}

// TestAGatewayComesBackInAStorm ends every probe of the interpreter while the gateway
// is down: it has served, so it is not asked again.
func TestAGatewayComesBackInAStorm(t *testing.T) {
	stormy, err := filepath.Abs(filepath.Join("..", "runner", "testdata", "stormy-python"))
	require.NoError(t, err)
	storm := filepath.Join(t.TempDir(), "storm")
	server := jupyter.NewServer(jupyter.ServerOptions{
		Python: stormy, Home: t.TempDir(), Start: opportunity.Starting(5*time.Minute, 0),
		Env: append(os.Environ(), "PI_TEST_PYTHON="+testpython.Path(t), "PI_TEST_STORM="+storm),
	})
	ctx, cancel := context.WithCancel(t.Context())
	up, ended := make(chan int, 1), make(chan error, 1)
	run := func() { ended <- server.Run(ctx, func(pid int) { up <- pid }) } // ends with its gateway; ended is its join
	go run()
	pid := <-up
	require.NoError(t, os.WriteFile(storm, nil, 0o600))
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.ErrorContains(t, <-ended, "the gateway ended")
	go run()
	select {
	case err := <-ended:
		require.FailNow(t, "it did not come back", "%v", err)
	case <-up:
	}
	cancel()
	require.NoError(t, <-ended)
}

func TestAStartThatCannotWorkSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		o    jupyter.ServerOptions
		want string
	}{
		"no python":        {jupyter.ServerOptions{Home: t.TempDir(), Env: []string{"PATH=" + t.TempDir()}}, "Python"},
		"external refused": {jupyter.ServerOptions{URL: "http://127.0.0.1:1"}, "not reachable"},
		"not a URL":        {jupyter.ServerOptions{URL: "ftp://x"}, "ftp"},
	} {
		t.Run(name, func(t *testing.T) {
			server := jupyter.NewServer(tc.o)
			var once sync.Once
			waits, started := make(chan struct{}), make(chan error, 1)
			go func() { // ends with the server's start, which it waits for; started is its join
				_, err := jupyter.New(jupyter.Options{Server: server}).Start(t.Context(), kernel.StartOptions{Waiting: func(kernel.Waiting) { once.Do(func() { close(waits) }) }})
				started <- err
			}()
			<-waits
			require.ErrorContains(t, server.Run(t.Context(), func(int) {}), tc.want)
			require.ErrorContains(t, <-started, tc.want)
		})
	}
}

func TestAStartEndsWithItsContext(t *testing.T) {
	server := jupyter.NewServer(jupyter.ServerOptions{}) // never run
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller left"))
	_, err := jupyter.New(jupyter.Options{Server: server}).Start(ctx, kernel.StartOptions{})
	require.ErrorContains(t, err, "the caller left")
}
