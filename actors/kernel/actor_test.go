package kernel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handler is the least that a supervisor needs to serve one kernel.
type handler struct {
	supervisor.BaseHandler
	o kernel.Options
}

const childKey = "s@/w"

func (h *handler) Handle(s *supervisor.Supervisor, msg any) error {
	switch m := msg.(type) {
	case supervisor.Work:
		if _, reset := m.Msg.(messages.Reset); reset {
			s.Restart(childKey, supervisor.Exit{Kind: messages.ExitReset})
			m.Settle(true)
			return nil
		}
		s.Submit(childKey, m)
	default:
		s.Send(childKey, m)
	}
	return nil
}

func (h *handler) Spec(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error) {
	return supervisor.Spec{
		Key: childKey, Kind: "kernel", ManualUp: true, StartTimeout: 24 * time.Hour, StopTimeout: h.o.StopTimeout(),
		New: func() supervisor.Behaviour { return kernel.New(h.o) },
	}, nil
}

// tree is a system with one supervisor that serves one kernel.
type tree struct {
	t       *testing.T
	backend *fakeBackend
	system  *supervisor.System
}

// inTree runs f with a tree in a synctest bubble, and proves afterwards that
// nothing is left of it.
func inTree(t *testing.T, o kernel.Options, f func(*testing.T, *tree)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		backend, ok := o.Backend.(*fakeBackend)
		if !ok {
			backend = &fakeBackend{startDelay: 500 * time.Millisecond}
			o.Backend = backend
		}
		o.Key = messages.SessionKey{Session: "s", Cwd: "/w"}
		policy := strategy.Chain(strategy.RestartOnce(), strategy.Heartbeat(5*time.Second))
		system, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Name: "root", Children: []supervisor.Spec{{
			Key: "gateway", Kind: "supervisor", New: func() supervisor.Behaviour {
				return supervisor.New(supervisor.Options{Name: "gateway", Strategy: policy, Handler: &handler{o: o}})
			},
		}}})
		require.NoError(t, err)
		defer func() { // also when f fails: nothing may stay in the bubble
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			report := system.Shutdown(ctx)
			assertClean(t, report.Clean() && len(system.Bugs()) == 0, "%+v %v", report, system.Bugs())
			assertClean(t, backend.living() == 0, "an interpreter was left behind")
		}()
		f(t, &tree{t: t, backend: backend, system: system})
	})
}

// assertClean fails without ending the test, so that it can be called while a
// failed one unwinds.
func assertClean(t *testing.T, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

func (tr *tree) ref() supervisor.Ref { return tr.system.Ref("gateway") }

// begin makes a call without waiting for it.
func (tr *tree) begin(id string, out *fakeOutlet, code ...string) supervisor.Reply[messages.Result] {
	exec := messages.Execute{ID: id, Key: messages.SessionKey{Session: "s", Cwd: "/w"}, Out: out}
	for _, c := range code {
		exec.Cells = append(exec.Cells, messages.Cell{Code: c})
	}
	return tr.begins(exec)
}

func (tr *tree) begins(exec messages.Execute) supervisor.Reply[messages.Result] {
	_, reply, err := supervisor.Begin[messages.Result](tr.ref(), exec)
	require.NoError(tr.t, err)
	return reply
}

func (tr *tree) run(code ...string) messages.Result {
	tr.t.Helper()
	return tr.wait(tr.begin("call", &fakeOutlet{}, code...))
}

func (tr *tree) wait(r supervisor.Reply[messages.Result]) messages.Result {
	tr.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	result, err := r.Wait(ctx)
	require.NoError(tr.t, err)
	return result
}

func outcomes(r messages.Result) []messages.Outcome {
	var list []messages.Outcome
	for _, c := range r.Cells {
		list = append(list, c.Outcome)
	}
	return list
}

const (
	ok         = messages.OutcomeOK
	raised     = messages.OutcomeError
	timeout    = messages.OutcomeTimeout
	cancelled  = messages.OutcomeCancelled
	isLost     = messages.OutcomeLost
	notStarted = messages.OutcomeNotStarted
)

func TestACallSaysWhatBecameOfItsCellsAndOfTheState(t *testing.T) {
	for name, tc := range map[string]struct {
		code    []string
		outcome messages.Outcome
		state   messages.State
		cells   []messages.Outcome
	}{
		"all complete":            {[]string{"count", "count"}, ok, messages.StateFresh, []messages.Outcome{ok, ok}},
		"no cells":                {nil, ok, messages.StateFresh, nil},
		"the second raises":       {[]string{"count", "raise", "count"}, raised, messages.StateFresh, []messages.Outcome{ok, raised, notStarted}},
		"the kernel dies":         {[]string{"count", "die", "count"}, isLost, messages.StateLost, []messages.Outcome{ok, isLost, notStarted}},
		"exit in the last cell":   {[]string{"count", "exit"}, ok, messages.StateLost, []messages.Outcome{ok, ok}},
		"exit before a last cell": {[]string{"exit", "count"}, isLost, messages.StateLost, []messages.Outcome{ok, notStarted}},
		"input that is not given": {[]string{"input", "count"}, raised, messages.StateFresh, []messages.Outcome{raised, notStarted}},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
				r := tr.run(tc.code...)
				require.Equal(t, tc.outcome, r.Outcome)
				require.Equal(t, tc.state, r.State)
				require.Equal(t, tc.cells, outcomes(r))
				require.Equal(t, name == "input that is not given", r.StdinRequested)
				for _, c := range r.Cells {
					require.Equal(t, c.Outcome == notStarted, c.Status == messages.CellPending, "%+v", c)
					require.Equal(t, c.Outcome == ok || c.Outcome == raised, c.ExitCode != nil, "%+v", c)
				}
			})
		})
	}
}

func TestStateIsKeptBetweenCallsAndFreshAfterADeath(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		require.Equal(t, messages.StateFresh, tr.run("count").State)
		second := tr.run("count")
		require.Equal(t, messages.StateKept, second.State)
		require.Equal(t, "2", second.Cells[0].Output)

		tr.backend.last().die()
		after := tr.run("count")
		require.Equal(t, messages.StateFresh, after.State)
		require.Equal(t, "1", after.Cells[0].Output)
		require.Equal(t, "the kernel process died", after.Reason)
		require.Empty(t, tr.run("count").Reason)
	})
}

func TestEventsFrameEachCell(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		out := &fakeOutlet{}
		tr.wait(tr.begin("a", out, "print x", "raise", "count"))
		require.Equal(t, []string{"status:running", "stdout", "status:complete", "status:running", "error", "status:error"}, out.types())
	})
}

func TestAnInterruptEndsTheCellAndKeepsTheState(t *testing.T) {
	for cause, want := range map[messages.InterruptCause]messages.Outcome{messages.CauseTimeout: timeout, messages.CauseCancelled: cancelled, "": cancelled} {
		t.Run(string(want)+string(cause), func(t *testing.T) {
			inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
				tr.run("count")
				reply := tr.begin("long", &fakeOutlet{}, "hang", "count")
				time.Sleep(time.Second)
				begin := time.Now()
				require.True(t, tr.ref().Tell(messages.Interrupt{Exec: "long", Cause: cause}))
				r := tr.wait(reply)
				require.Less(t, time.Since(begin), 100*time.Millisecond)
				require.Equal(t, want, r.Outcome)
				require.Equal(t, []messages.Outcome{want, notStarted}, outcomes(r))
				require.Equal(t, messages.StateKept, r.State)
				require.Equal(t, "2", tr.run("count").Cells[0].Output)
			})
		})
	}
}

func TestAnInterruptForAnotherCallIsIgnored(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		reply := tr.begin("a", &fakeOutlet{}, "sleep 10s")
		time.Sleep(time.Second)
		tr.ref().Tell(messages.Interrupt{Exec: "b"})
		require.Equal(t, ok, tr.wait(reply).Outcome)
		tr.ref().Tell(messages.Interrupt{}) // nothing runs
		require.Equal(t, ok, tr.run("count").Outcome)
	})
}

func TestACellThatDoesNotStopCostsTheKernel(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.run("count")
		reply := tr.begin("stuck", &fakeOutlet{}, "swallow")
		time.Sleep(time.Second)
		begin := time.Now()
		tr.ref().Tell(messages.Interrupt{Exec: "stuck", Cause: messages.CauseTimeout})
		r := tr.wait(reply)
		require.Equal(t, 1500*time.Millisecond, time.Since(begin))
		require.Equal(t, timeout, r.Outcome)
		require.Equal(t, messages.StateLost, r.State)
		require.Equal(t, kernel.ErrUnresponsive.Error(), r.Reason)

		next := tr.run("count")
		require.Equal(t, messages.StateFresh, next.State)
		require.Equal(t, "1", next.Cells[0].Output)
		require.Equal(t, kernel.ErrUnresponsive.Error(), next.Reason)
	})
}

func TestASlowSinkIsNotTheKernelsFault(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.run("count")
		out := &fakeOutlet{block: make(chan struct{})}
		reply := tr.begin("slow", out, "print x")
		time.Sleep(time.Minute)
		tr.ref().Tell(messages.Interrupt{Exec: "slow", Cause: messages.CauseTimeout})
		r := tr.wait(reply)
		require.Equal(t, timeout, r.Outcome)
		require.Equal(t, messages.StateKept, r.State)
		require.Contains(t, r.Cells[0].Output, "outputs were dropped")
		require.Equal(t, "2", tr.run("count").Cells[0].Output)
	})
}

// Sinks that give way let an interrupted call end within a second, with all of
// its output.
func TestASlowSinkGivesWayToAnInterrupt(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		out := &fakeOutlet{block: make(chan struct{})}
		out.hurried = func() { close(out.block) }
		reply := tr.begin("slow", out, "print x")
		time.Sleep(time.Minute)
		begin := time.Now()
		tr.ref().Tell(messages.Interrupt{Exec: "slow", Cause: messages.CauseTimeout})
		r := tr.wait(reply)
		require.Equal(t, 1500*time.Millisecond/8, time.Since(begin))
		require.Equal(t, timeout, r.Outcome)
		require.Equal(t, messages.StateFresh, r.State)
		require.Equal(t, "x", r.Cells[0].Output)
	})
}

// A cell that has ended while its output waits for a sink costs neither the
// kernel nor the caller's time.
func TestABacklogIsLeftOut(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.run("count")
		out := &fakeOutlet{block: make(chan struct{})}
		reply := tr.begin("slow", out, "backlog x")
		time.Sleep(time.Minute)
		begin := time.Now()
		tr.ref().Tell(messages.Interrupt{Exec: "slow", Cause: messages.CauseTimeout})
		r := tr.wait(reply)
		require.Equal(t, 500*time.Millisecond, time.Since(begin))
		require.Equal(t, timeout, r.Outcome)
		require.Equal(t, messages.StateKept, r.State)
		require.Contains(t, r.Cells[0].Output, "left out")
		require.Equal(t, "2", tr.run("count").Cells[0].Output)
	})
}

func TestASecondDeathBeforeACallCompletesIsFinalUntilAReset(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.run("count")
		require.Equal(t, isLost, tr.run("die").Outcome)
		require.Equal(t, isLost, tr.run("die").Outcome)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := tr.begin("refused", &fakeOutlet{}, "count").Wait(ctx)
		require.ErrorIs(t, err, supervisor.ErrExhausted)

		_, err = supervisor.Ask[bool](ctx, tr.ref(), messages.Reset{})
		require.NoError(t, err)
		require.Equal(t, messages.StateFresh, tr.run("count").State)
	})
}

func TestACompletedCallGivesTheRestartBack(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		for range 5 {
			require.Equal(t, ok, tr.run("count").Outcome)
			require.Equal(t, isLost, tr.run("die").Outcome)
		}
	})
}

func TestAResetCancelsWhatRuns(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		reply := tr.begin("a", &fakeOutlet{}, "hang")
		time.Sleep(time.Second)
		_, err := supervisor.Ask[bool](context.Background(), tr.ref(), messages.Reset{})
		require.NoError(t, err)
		r := tr.wait(reply)
		require.Equal(t, cancelled, r.Outcome)
		require.Equal(t, messages.StateLost, r.State)
		require.Equal(t, "the session was reset", r.Reason)
	})
}

func TestAStartThatFailsIsToldAndTriedAgain(t *testing.T) {
	backend := &fakeBackend{startErr: errors.New("no python here")}
	inTree(t, kernel.Options{Backend: backend}, func(t *testing.T, tr *tree) {
		_, err := tr.begin("a", &fakeOutlet{}, "count").Wait(context.Background())
		require.ErrorIs(t, err, supervisor.ErrStartFailed)
		require.ErrorContains(t, err, "no python here")
		backend.startErr = nil
		require.Equal(t, ok, tr.run("count").Outcome)
	})
}

func TestAStartThatIsCancelledLeavesNothing(t *testing.T) {
	inTree(t, kernel.Options{Backend: &fakeBackend{startDelay: 20 * time.Second}}, func(t *testing.T, tr *tree) {
		tr.begin("a", &fakeOutlet{}, "count")
		time.Sleep(time.Second) // and inTree shuts the system down
	})
}

func TestAKernelThatDoesNotAnswerIsReplaced(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.run("count")
		i := tr.backend.last()
		i.mu.Lock()
		i.silent = true
		i.mu.Unlock()
		time.Sleep(20 * time.Second)
		require.NotSame(t, i, tr.backend.last(), "the silent interpreter was not replaced")
		r := tr.run("count")
		require.Equal(t, messages.StateFresh, r.State)
		require.Contains(t, r.Reason, "heartbeat")
	})
}

func TestABusyKernelThatAnswersIsAlive(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		r := tr.run("sleep 50m")
		require.Equal(t, ok, r.Outcome)
		require.Equal(t, messages.StateFresh, r.State)
	})
}

func TestACallInTheHandOfAHungKernelIsLost(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.run("count")
		i := tr.backend.last()
		i.mu.Lock()
		i.silent = true
		i.mu.Unlock()
		r := tr.run("swallow")
		require.Equal(t, isLost, r.Outcome)
		require.Equal(t, messages.StateLost, r.State)
		require.Contains(t, r.Reason, "heartbeat")
		require.Equal(t, messages.StateFresh, tr.run("count").State)
	})
}
