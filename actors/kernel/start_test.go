package kernel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// slow is a kernel actor that can be kept from handling messages.
type slow struct{ *kernel.Actor }

// hold keeps it in Handle until the channel is closed.
type hold chan struct{}

func (a slow) Handle(ctx *supervisor.Ctx, msg any) error {
	if h, ok := msg.(hold); ok {
		<-h
		return nil
	}
	return a.Actor.Handle(ctx, msg)
}

// slowHandler serves one slow kernel, and ends it on request.
type slowHandler struct {
	supervisor.BaseHandler
	o kernel.Options
}

type endIt struct{}

func (h *slowHandler) Handle(s *supervisor.Supervisor, msg any) error {
	switch m := msg.(type) {
	case supervisor.Work:
		s.Submit(childKey, m)
	case endIt:
		s.End(childKey, supervisor.Exit{Kind: messages.ExitShutdown})
	}
	return nil
}

func (h *slowHandler) Spec(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error) {
	return supervisor.Spec{
		Key: childKey, ManualUp: true, StopTimeout: h.o.StopTimeout(),
		New: func() supervisor.Behaviour { return slow{kernel.New(h.o)} },
	}, nil
}

// The news that the interpreter has started is in the mailbox when the actor is
// asked to stop, and is not handled any more.
func TestAnInterpreterThatStartedTooLateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fakeBackend{startDelay: time.Second}
		o := kernel.Options{Backend: backend}
		system, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{{
			Key: "gateway", New: func() supervisor.Behaviour {
				return supervisor.New(supervisor.Options{Name: "gateway", Handler: &slowHandler{o: o}})
			},
		}}})
		require.NoError(t, err)
		defer system.Shutdown(context.Background())
		exec := messages.Execute{ID: "call", Out: &fakeOutlet{}}
		_, reply, err := supervisor.Begin[messages.Result](system.Ref("gateway"), exec)
		require.NoError(t, err)
		synctest.Wait()

		held := make(hold)
		require.True(t, system.Ref("gateway", childKey).Tell(held))
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, backend.living())
		require.True(t, system.Ref("gateway").Tell(endIt{}))
		synctest.Wait()
		close(held)
		_, err = reply.Wait(t.Context())
		require.ErrorIs(t, err, supervisor.ErrEnded)
		synctest.Wait()
		require.Zero(t, backend.living())
	})
}

// Who left before the first cell does not read that the kernel is new: the next
// call has to be told.
func TestAKernelIsFreshUntilACellHasRun(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.run("count")
		tr.backend.last().die()
		synctest.Wait()
		require.Equal(t, messages.StateFresh, tr.run().State, "a call without cells")
		r := tr.run("count")
		require.Equal(t, messages.StateFresh, r.State)
		require.Contains(t, r.Reason, "died")
		require.Equal(t, messages.StateKept, tr.run("count").State)
	})
}
