package gateway_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// frail is a kernel actor that can be made to fail, and that takes its time to
// end.
type frail struct{ scripted }

// failAfter has it wait for the channel in Handle, and fail.
type failAfter chan struct{}

func (k *frail) Handle(ctx *supervisor.Ctx, msg any) error {
	if f, ok := msg.(failAfter); ok {
		<-f
		return errors.New("as told")
	}
	return k.scripted.Handle(ctx, msg)
}

func (k *frail) Terminate(ctx *supervisor.Ctx, exit supervisor.Exit) {
	<-time.After(3 * time.Second)
	k.scripted.Terminate(ctx, exit)
}

// A call that was given to a kernel which then ends without having begun it
// goes to the next one, but not when its caller leaves, or its time is up,
// between the two.
func TestACallThatIsToEndDoesNotGoToTheNextKernel(t *testing.T) {
	for name, leave := range map[string]func(*tree){
		string(messages.OutcomeCancelled): func(tr *tree) {
			tr.ref().Tell(messages.Interrupt{Key: key("s"), Exec: "late", Cause: messages.CauseCancelled})
		},
		string(messages.OutcomeTimeout): func(*tree) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := &tree{t: t}
				o := gateway.Options{Name: "gateway", NewKernel: func(gateway.KernelSpec) supervisor.Behaviour {
					return &frail{scripted{start: time.Second, tree: tr}}
				}}
				system, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Name: "root", Children: []supervisor.Spec{{
					Key: "gateway", New: func() supervisor.Behaviour { return gateway.New(o) },
				}}})
				require.NoError(t, err)
				tr.system = system
				defer system.Shutdown(context.Background())

				tr.run("s", "x")
				fail := make(failAfter)
				require.True(t, system.Ref("gateway", key("s").ID()).Tell(fail))
				late := call("late", "s", "x")
				late.Deadline = time.Now().Add(2 * time.Second)
				reply, next := tr.begin(late), tr.begin(call("next", "s", "x"))
				synctest.Wait() // the call is in the mailbox of the kernel
				close(fail)
				synctest.Wait() // the kernel ends, which takes 3 s
				leave(tr)
				time.Sleep(2500 * time.Millisecond) // the deadline has passed
				r := tr.wait(reply)
				require.Equal(t, name, string(r.Outcome))
				require.Equal(t, messages.CellPending, r.Cells[0].Status)
				require.Equal(t, messages.StateFresh, tr.wait(next).State)
				require.NotContains(t, tr.order, "late")
			})
		})
	}
}

// A call that was cancelled while its kernel had not come to it is told as cancelled,
// though the end of its session finds it first.
func TestACancelledCallIsToldAsThatWhenItsSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &tree{t: t}
		o := gateway.Options{Name: "gateway", NewKernel: func(gateway.KernelSpec) supervisor.Behaviour {
			return &frail{scripted{start: time.Second, tree: tr}}
		}}
		system, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Name: "root", Children: []supervisor.Spec{{
			Key: "gateway", New: func() supervisor.Behaviour { return gateway.New(o) },
		}}})
		require.NoError(t, err)
		tr.system = system
		defer system.Shutdown(context.Background())

		tr.run("s", "x")
		blocked := make(failAfter)
		require.True(t, system.Ref("gateway", key("s").ID()).Tell(blocked))
		reply := tr.begin(call("late", "s", "x"))
		synctest.Wait() // the call is in the mailbox of the kernel
		require.True(t, tr.ref().Tell(messages.Interrupt{Key: key("s"), Exec: "late", Cause: messages.CauseCancelled}))
		require.True(t, tr.ref().Tell(messages.Close{Key: key("s")}))
		synctest.Wait()
		close(blocked)
		r := tr.wait(reply)
		require.Equal(t, messages.OutcomeCancelled, r.Outcome)
		require.Equal(t, messages.CellPending, r.Cells[0].Status)
		require.NotContains(t, tr.order, "late")
	})
}
