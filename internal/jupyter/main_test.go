package jupyter_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// withGateway runs the tests and then ends the real gateway, if one of them
// started it, so that the leak check sees its goroutines end.
type withGateway struct{ m *testing.M }

func (w withGateway) Run() int {
	code := w.m.Run()
	stopRealGateway()
	return code
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(withGateway{m}) }

// patience bounds every wait of a test that is expected to succeed.
const patience = 3 * time.Minute

// tick is how often a condition is looked at.
const tick = 2 * time.Millisecond

// within returns a context that ends the test's patience.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// fake starts a fake gateway and a client of it with short waits.
func fake(t testing.TB, o fakegateway.Options, change ...func(*jupyter.Options)) (*fakegateway.Server, *jupyter.Client) {
	t.Helper()
	s, err := fakegateway.Start(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	opts := jupyter.Options{
		URL: s.URL() + "/", Token: s.Token(), SpoolDir: t.TempDir(),
		Settle: 40 * time.Millisecond, VerifyEvery: 20 * time.Millisecond, RestartSettle: time.Millisecond,
	}
	for _, c := range change {
		c(&opts)
	}
	c, err := jupyter.NewClient(opts)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return s, c
}

// startKernel starts a kernel and deletes it after the test.
func startKernel(t testing.TB, c *jupyter.Client) *jupyter.Kernel {
	t.Helper()
	k, err := c.Start(within(t), jupyter.StartRequest{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// A test that closed the server cannot delete; the goroutines end anyway.
		_ = k.Delete(ctx)
	})
	return k
}

// fakeKernel starts a fake gateway with one kernel.
func fakeKernel(t testing.TB, o fakegateway.Options, change ...func(*jupyter.Options)) (*jupyter.Kernel, *fakegateway.Kernel) {
	t.Helper()
	s, c := fake(t, o, change...)
	k := startKernel(t, c)
	live := s.Live()
	require.Len(t, live, 1)
	return k, live[0]
}

// outputs collects what an execution emits.
type outputs struct {
	mu  sync.Mutex
	all []messages.Event
}

func (o *outputs) emit(_ context.Context, out messages.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, out)
	return nil
}

func (o *outputs) list() []messages.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}

// text joins what was written to a stream.
func (o *outputs) text(name string) string {
	var b []byte
	for _, out := range o.list() {
		if s, ok := out.(messages.Stream); ok && s.Name == messages.StreamName(name) {
			b = append(b, s.Text...)
		}
	}
	return string(b)
}

// run executes code that must not fail on the way.
func run(t testing.TB, k *jupyter.Kernel, code string) (jupyter.ExecuteReply, *outputs) {
	t.Helper()
	out := &outputs{}
	r, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: code}, out.emit)
	require.NoError(t, err)
	return r, out
}

// finished is the end of an execution that ran in its own goroutine.
type finished struct {
	reply jupyter.ExecuteReply
	err   error
}

// inBackground executes code while the test does something else.
func inBackground(t testing.TB, k *jupyter.Kernel, r jupyter.ExecuteRequest, emit func(context.Context, messages.Event) error) <-chan finished {
	t.Helper()
	ctx := within(t)
	ch := make(chan finished, 1)
	go func() {
		reply, err := k.Execute(ctx, r, emit)
		ch <- finished{reply, err}
	}()
	return ch
}

// await receives from ch, or fails the test.
func await[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
	}
	panic("unreachable")
}

// requireLost checks that a kernel is lost, and that an execution told the same.
func requireLost(t testing.TB, k *jupyter.Kernel, err error, replaced bool) *jupyter.LostError {
	t.Helper()
	var lost *jupyter.LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, replaced, lost.Replaced, lost.Error())
	await(t, k.Done())
	require.ErrorAs(t, k.Err(), &lost)
	return lost
}
