package supervisor_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

func TestMain(m *testing.M) {
	// Hollywood logs to the default logger and nowhere else; what it says of
	// actors that tests end on purpose is of no interest here.
	slog.SetDefault(slog.New(slog.DiscardHandler)) //nolint:forbidigo // the only way to reach it
	goleak.VerifyTestMain(m)
}

// behaviour is a Behaviour of functions; nil ones do nothing.
type behaviour struct {
	init      func(*supervisor.Ctx) error
	handle    func(*supervisor.Ctx, any) error
	terminate func(*supervisor.Ctx, supervisor.Exit)
}

func (a *behaviour) Init(c *supervisor.Ctx) error {
	if a.init == nil {
		return nil
	}
	return a.init(c)
}

func (a *behaviour) Handle(c *supervisor.Ctx, m any) error {
	if a.handle == nil {
		return nil
	}
	return a.handle(c, m)
}

func (a *behaviour) Terminate(c *supervisor.Ctx, e supervisor.Exit) {
	if a.terminate != nil {
		a.terminate(c, e)
	}
}

// of is the New of a Spec for children that all look alike.
func of(a behaviour) func() supervisor.Behaviour {
	return func() supervisor.Behaviour { return &a }
}

// handler is a Handler of functions; nil ones do what BaseHandler does.
type handler struct {
	supervisor.BaseHandler
	open     func(*supervisor.Supervisor) error
	handle   func(*supervisor.Supervisor, any) error
	spec     func(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error)
	unserved func(*supervisor.Supervisor, supervisor.Work, *supervisor.ServiceError)
	changed  func(*supervisor.Supervisor, messages.ChildChanged)
	close    func(*supervisor.Supervisor, supervisor.Exit)
}

func (h *handler) Open(s *supervisor.Supervisor) error {
	if h.open == nil {
		return nil
	}
	return h.open(s)
}

// do is a message that a handler runs.
type do func(*supervisor.Supervisor) error

func (h *handler) Handle(s *supervisor.Supervisor, m any) error {
	if f, ok := m.(do); ok {
		return f(s)
	}
	if h.handle == nil {
		return h.BaseHandler.Handle(s, m)
	}
	return h.handle(s, m)
}

func (h *handler) Spec(s *supervisor.Supervisor, key string, w supervisor.Work) (supervisor.Spec, error) {
	if h.spec == nil {
		return h.BaseHandler.Spec(s, key, w)
	}
	return h.spec(s, key, w)
}

func (h *handler) Unserved(s *supervisor.Supervisor, w supervisor.Work, e *supervisor.ServiceError) {
	if h.unserved == nil {
		h.BaseHandler.Unserved(s, w, e)
		return
	}
	h.unserved(s, w, e)
}

func (h *handler) Changed(s *supervisor.Supervisor, e messages.ChildChanged) {
	if h.changed != nil {
		h.changed(s, e)
	}
}

func (h *handler) Close(s *supervisor.Supervisor, e supervisor.Exit) {
	if h.close != nil {
		h.close(s, e)
	}
}

// supervise is the Spec of a supervisor.
func supervise(key string, o supervisor.Options) supervisor.Spec {
	return supervisor.Spec{Key: key, New: func() supervisor.Behaviour { return supervisor.New(o) }}
}

// start starts a system, and has the test end with a clean shutdown, without
// bugs, and without work in hand. It is for tests outside of a bubble.
func start(t *testing.T, o supervisor.SystemOptions) *supervisor.System {
	t.Helper()
	sys := startOnly(t, o)
	t.Cleanup(func() { stop(t, sys) })
	return sys
}

func startOnly(t *testing.T, o supervisor.SystemOptions) *supervisor.System {
	t.Helper()
	sys, err := supervisor.Start(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() { // a test that failed has to leave its bubble empty, too
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			sys.Shutdown(ctx)
		}
	})
	return sys
}

// stop shuts sys down and checks that all is well.
func stop(t *testing.T, sys *supervisor.System) {
	t.Helper()
	report := sys.Shutdown(context.Background())
	require.Empty(t, report.Leftovers)
	check(t, sys)
}

// check checks what always holds after a shutdown.
func check(t *testing.T, sys *supervisor.System) {
	t.Helper()
	require.Empty(t, sys.Bugs())
	require.Zero(t, sys.Live(), "actors that are not over")
	require.Zero(t, sys.InHand(), "work in hand")
}

// in runs f in the goroutine of the supervisor at r, and returns when it has run
// and everything that follows from it at once is done.
func in(t *testing.T, r supervisor.Ref, f func(*supervisor.Supervisor)) {
	t.Helper()
	done := make(chan struct{})
	require.True(t, r.Tell(do(func(s *supervisor.Supervisor) error { f(s); close(done); return nil })))
	<-done
}

// submit submits msg to the child key of the supervisor at r.
func submit(t *testing.T, r supervisor.Ref, key string, msg any) supervisor.Reply[any] {
	t.Helper()
	return submitWork(t, r, key, msg, nil)
}

// submitWork does so with a work that change has been at.
func submitWork(t *testing.T, r supervisor.Ref, key string, msg any, change func(*supervisor.Work)) supervisor.Reply[any] {
	t.Helper()
	w, reply := supervisor.NewWork[any](msg)
	if change != nil {
		change(&w)
	}
	in(t, r, func(s *supervisor.Supervisor) { s.Submit(key, w) })
	return reply
}

// answer waits for the answer.
func answer(t *testing.T, r supervisor.Reply[any]) any {
	t.Helper()
	v, err := r.Wait(context.Background())
	require.NoError(t, err)
	return v
}

// refusal waits for an answer that is a ServiceError.
func refusal(t *testing.T, r supervisor.Reply[any]) *supervisor.ServiceError {
	t.Helper()
	_, err := r.Wait(context.Background())
	var se *supervisor.ServiceError
	require.ErrorAs(t, err, &se)
	return se
}

// log is a list that several goroutines write.
type log struct {
	mu sync.Mutex
	l  []string
}

func (l *log) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.l = append(l.l, s)
}

// take returns what was added since the last take.
func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.l
	l.l = nil
	return out
}

// deaf is a Handler that hangs with its first message, until release is closed.
func deaf(release <-chan struct{}) *handler {
	return &handler{handle: func(*supervisor.Supervisor, any) error { <-release; return nil }}
}

// clinging is a behaviour that does not end before release is closed.
func clinging(release <-chan struct{}) behaviour {
	return behaviour{terminate: func(*supervisor.Ctx, supervisor.Exit) { <-release }}
}
