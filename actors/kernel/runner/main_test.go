//go:build linux

package runner_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/messages"
)

// patience bounds every wait of the tests.
const patience = 3 * time.Minute

// roleEnv makes the test binary play a host instead of running tests.
const roleEnv = "COPPICE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(suite{m})
}

// suite runs the tests with one fork server for all, which is gone before
// anybody looks for leaks.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	code := s.m.Run()
	shared.stop()
	plain.stop()
	return code
}

// forks is a fork server that is running.
type forks struct {
	server *runner.Server
	pids   chan int
	cancel context.CancelFunc
	ended  chan error
}

// python is the interpreter that the tests use: that of the other suites, or
// what is on PATH. It needs no packages.
func python() string { return os.Getenv("COPPICE_TEST_PYTHON") }

func startServer(o runner.ServerOptions) *forks {
	if o.Python == "" {
		o.Python = python()
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &forks{server: runner.NewServer(o), pids: make(chan int, 8), cancel: cancel, ended: make(chan error, 1)}
	go func() { f.ended <- f.server.Run(ctx, func(pid int) { f.pids <- pid }) }() // ends with cancel; ended is its join
	return f
}

func (f *forks) stop() error {
	f.cancel()
	return <-f.ended
}

// lazy starts the shared server when the first test needs it.
type lazy struct {
	options runner.ServerOptions
	once    sync.Once
	forks   *forks
}

var shared lazy

func (l *lazy) get() *forks {
	l.once.Do(func() { l.forks = startServer(l.options) })
	return l.forks
}

func (l *lazy) stop() {
	if l.forks != nil {
		if err := l.forks.stop(); err != nil {
			panic(err)
		}
	}
}

// session starts a session on the shared server.
func session(tb testing.TB) *runner.Interpreter {
	tb.Helper()
	return sessionOn(tb, shared.get(), runner.Options{}, kernel.StartOptions{Key: messages.SessionKey{Cwd: tb.TempDir()}})
}

func sessionOn(tb testing.TB, f *forks, o runner.Options, so kernel.StartOptions) *runner.Interpreter {
	tb.Helper()
	o.Server = f.server
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	interp, err := runner.New(o).Start(ctx, so)
	require.NoError(tb, err)
	i := interp.(*runner.Interpreter)
	tb.Cleanup(func() { closeSession(tb, i) })
	return i
}

func closeSession(tb testing.TB, i kernel.Interpreter) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(tb, i.Close(ctx))
}

// seen is what a cell gave.
type seen struct {
	kernel.CellReply
	err    error
	events []messages.Event
}

// run runs one cell to its end.
func run(tb testing.TB, i kernel.Interpreter, code string) seen {
	tb.Helper()
	return request(tb, i, kernel.CellRequest{Code: code})
}

func request(tb testing.TB, i kernel.Interpreter, r kernel.CellRequest) seen {
	tb.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("%q did not end", r.Code))
	defer cancel()
	var s seen
	s.CellReply, s.err = i.Execute(ctx, r, func(_ context.Context, e messages.Event) error {
		s.events = append(s.events, e)
		return nil
	})
	return s
}

// ok runs a cell that must end well, and returns it.
func ok(tb testing.TB, i kernel.Interpreter, code string) seen {
	tb.Helper()
	s := run(tb, i, code)
	require.NoError(tb, s.err)
	require.True(tb, s.OK, "%q: %+v", code, s.Error)
	require.Empty(tb, s.Incomplete)
	return s
}

// text is what the cell printed and its result, in order: stderr in brackets,
// the result after an arrow.
func (s seen) text() string {
	var b strings.Builder
	for _, e := range s.events {
		switch e := e.(type) {
		case messages.Stream:
			if e.Name == messages.StderrStream {
				fmt.Fprintf(&b, "[%s]", e.Text)
			} else {
				b.WriteString(e.Text)
			}
		case messages.ExecuteResult:
			text, _ := e.Data.Text(messages.MIMEPlain)
			b.WriteString("=> " + text)
		case messages.Display:
			text, _ := e.Data.Text(messages.MIMEPlain)
			b.WriteString("<" + text + ">")
		case messages.Notice:
			b.WriteString("(" + e.Code + ")")
		}
	}
	return b.String()
}

// stream is all text of one stream.
func (s seen) stream(name messages.StreamName) string {
	var b strings.Builder
	for _, e := range s.events {
		if e, ok := e.(messages.Stream); ok && e.Name == name {
			b.WriteString(e.Text)
		}
	}
	return b.String()
}

// plain makes sessions without a fork server.
var plain = lazy{options: runner.ServerOptions{NoFork: true}}
