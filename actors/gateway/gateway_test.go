package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a kernel actor that obeys the first word of a call's first cell.
type scripted struct {
	start time.Duration
	work  *supervisor.Work
	n     int
	past  *messages.Exit
	tree  *tree
}

type (
	ready struct{}
	over  struct{}
)

func (k *scripted) Init(ctx *supervisor.Ctx) error {
	if k.tree.refuse.Add(-1) >= 0 {
		if k.tree.refusal != nil {
			return k.tree.refusal
		}
		return errors.New("fork: too many open files")
	}
	ctx.After(k.start, ready{})
	return nil
}

func (k *scripted) Handle(ctx *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case ready:
		ctx.Up()
	case supervisor.Work:
		k.work = &m
		exec := m.Msg.(messages.Execute)
		word, rest, _ := strings.Cut(exec.Cells[0].Code, " ")
		switch word {
		case "sleep":
			d, err := time.ParseDuration(rest)
			if err != nil {
				return err
			}
			ctx.After(d, over{})
		case "panic":
			panic("as told")
		default:
			k.finish(ctx, messages.OutcomeOK)
		}
	case over:
		if k.work != nil {
			k.finish(ctx, messages.OutcomeOK)
		}
	case messages.Interrupt:
		if k.work != nil && m.Exec == k.work.Msg.(messages.Execute).ID {
			out := messages.OutcomeCancelled
			if m.Cause == messages.CauseTimeout {
				out = messages.OutcomeTimeout
			}
			k.finish(ctx, out)
		}
	}
	return nil
}

func (k *scripted) finish(ctx *supervisor.Ctx, out messages.Outcome) {
	k.n++
	exec := k.work.Msg.(messages.Execute)
	k.tree.mu.Lock()
	k.tree.order = append(k.tree.order, exec.ID)
	k.tree.mu.Unlock()
	r := messages.Result{Outcome: out, State: messages.StateKept, Exec: exec.ID, Text: fmt.Sprint(k.n)}
	if k.n == 1 {
		r.State = messages.StateFresh
		if k.past != nil {
			r.Reason = string(k.past.Kind)
		}
		if e, ok := ctx.Previous(); ok {
			r.Reason = string(e.Kind)
		}
	}
	w := *k.work
	k.work = nil
	ctx.Finish(w, r)
}

func (k *scripted) Terminate(*supervisor.Ctx, supervisor.Exit) {
	k.tree.ended.Add(1)
	if k.work != nil {
		k.work.Settle(messages.Result{Outcome: messages.OutcomeCancelled, State: messages.StateLost})
	}
}

// tree is a system with one gateway of scripted kernels.
type tree struct {
	t      *testing.T
	system *supervisor.System
	mu     sync.Mutex
	order  []string // of the calls that ended; guarded by mu, read when all is idle
	ended  atomic.Int64
	refuse atomic.Int64 // how many of the next starts fail
	// refusal is what they fail with, set before the first. nil: an error of fork.
	refusal error
	start   time.Duration
}

func inTree(t *testing.T, o gateway.Options, f func(*testing.T, *tree)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tr := &tree{t: t, start: time.Second}
		o.Name = "gateway"
		o.NewKernel = func(k gateway.KernelSpec) supervisor.Behaviour {
			return &scripted{start: tr.start, past: k.Past, tree: tr}
		}
		system, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Name: "root", Children: []supervisor.Spec{{
			Key: "gateway", Kind: "gateway", New: func() supervisor.Behaviour { return gateway.New(o) },
		}}})
		require.NoError(t, err)
		tr.system = system
		defer func() { // also when f fails: nothing may stay in the bubble
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if report := system.Shutdown(ctx); !report.Clean() || len(system.Bugs()) > 0 {
				t.Errorf("%+v %v", report, system.Bugs())
			}
		}()
		f(t, tr)
	})
}

func (tr *tree) ref() supervisor.Ref { return tr.system.Ref("gateway") }

func key(name string) messages.SessionKey { return messages.SessionKey{Session: name, Cwd: "/w"} }

func call(id, session, code string) messages.Execute {
	return messages.Execute{ID: id, Key: key(session), Cells: []messages.Cell{{Code: code}}}
}

func (tr *tree) begin(exec messages.Execute) supervisor.Reply[messages.Result] {
	_, reply, err := supervisor.Begin[messages.Result](tr.ref(), exec)
	require.NoError(tr.t, err)
	return reply
}

func (tr *tree) wait(r supervisor.Reply[messages.Result]) messages.Result {
	tr.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	defer cancel()
	result, err := r.Wait(ctx)
	require.NoError(tr.t, err)
	return result
}

func (tr *tree) run(session, code string) messages.Result {
	tr.t.Helper()
	return tr.wait(tr.begin(call(messages.NewID(), session, code)))
}

func (tr *tree) ask(msg any) bool {
	tr.t.Helper()
	answer, err := supervisor.Ask[bool](context.Background(), tr.ref(), msg)
	require.NoError(tr.t, err)
	return answer
}

func TestCallsOfAKeyRunInOrderOnOneKernel(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		var replies []supervisor.Reply[messages.Result]
		for i := range 20 {
			replies = append(replies, tr.begin(call(fmt.Sprint(i), "a", "sleep 1s")))
		}
		for i, r := range replies {
			require.Equal(t, fmt.Sprint(i+1), tr.wait(r).Text)
		}
		require.Len(t, tr.order, 20)
	})
}

func TestAWaiterThatLeavesDoesNotDisturbTheOrder(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		a := tr.begin(call("a", "s", "sleep 10s"))
		b := tr.begin(call("b", "s", "sleep 10s"))
		c := tr.begin(call("c", "s", "sleep 10s"))
		time.Sleep(3 * time.Second)
		tr.ref().Tell(messages.Interrupt{Key: key("s"), Exec: "b", Cause: messages.CauseCancelled})
		left := tr.wait(b)
		require.Equal(t, messages.OutcomeCancelled, left.Outcome)
		require.Equal(t, messages.CellPending, left.Cells[0].Status)
		tr.wait(a)
		tr.wait(c)
		require.Equal(t, []string{"a", "c"}, tr.order)
	})
}

func TestADeadlineCountsInTheQueueAndNotWhileTheKernelStarts(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.start = 20 * time.Second
		first := call("first", "s", "sleep 3s")
		first.Timeout, first.Deadline = 5*time.Second, time.Now().Add(5*time.Second)
		second := call("second", "s", "sleep 3s")
		second.Timeout, second.Deadline = 2*time.Second, time.Now().Add(2*time.Second)
		begin := time.Now()
		a, b := tr.begin(first), tr.begin(second)

		rb := tr.wait(b)
		require.Equal(t, messages.OutcomeTimeout, rb.Outcome)
		require.Equal(t, messages.CellPending, rb.Cells[0].Status, "it never ran")
		require.InDelta(t, 22, time.Since(begin).Seconds(), 0.1)
		require.Equal(t, messages.OutcomeOK, tr.wait(a).Outcome)

		third := call("third", "s", "sleep 1h")
		third.Deadline = time.Now().Add(7 * time.Second)
		begin = time.Now()
		require.Equal(t, messages.OutcomeTimeout, tr.wait(tr.begin(third)).Outcome)
		require.InDelta(t, 7, time.Since(begin).Seconds(), 0.1)
	})
}

func TestTheFifthSessionEvictsTheLeastRecentlyUsed(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		for _, s := range []string{"a", "b", "c", "d"} {
			require.Equal(t, messages.StateFresh, tr.run(s, "x").State)
			time.Sleep(time.Second)
		}
		require.Equal(t, messages.StateKept, tr.run("a", "x").State)
		require.Equal(t, messages.StateFresh, tr.run("e", "x").State)
		require.Equal(t, messages.StateKept, tr.run("a", "x").State)
		again := tr.run("b", "x")
		require.Equal(t, messages.StateFresh, again.State)
		require.Equal(t, string(messages.ExitEvicted), again.Reason)
	})
}

func TestBusyAndPinnedSessionsAreNotEvicted(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		busy := tr.begin(call("busy", "busy", "sleep 1h"))
		tr.run("pinned", "x")
		require.True(t, tr.ask(messages.Pin{Key: key("pinned"), Pinned: true}))
		time.Sleep(30 * time.Minute)
		for i := range 6 {
			tr.run(fmt.Sprint(i), "x")
		}
		require.Equal(t, messages.StateKept, tr.run("pinned", "x").State)
		require.Equal(t, messages.OutcomeOK, tr.wait(busy).Outcome)
		require.Equal(t, messages.StateKept, tr.run("busy", "x").State)
	})
}

func TestAnIdleSessionEndsAfterItsTTL(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("a", "sleep 10m") // longer than the TTL: idle is counted from the end
		time.Sleep(4 * time.Minute)
		require.Equal(t, messages.StateKept, tr.run("a", "x").State)
		time.Sleep(6 * time.Minute)
		require.EqualValues(t, 1, tr.ended.Load())
		require.Equal(t, messages.StateFresh, tr.run("a", "x").State)
	})
}

func TestWhenNothingCanBeEvictedTheAnswerIsOverloaded(t *testing.T) {
	inTree(t, gateway.Options{Strategy: gateway.Policy{IdleTTL: time.Hour, MaxKernels: 1}.Strategy()}, func(t *testing.T, tr *tree) {
		busy := tr.begin(call("busy", "a", "sleep 1h"))
		time.Sleep(5 * time.Second)
		r := tr.run("b", "x")
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		require.Contains(t, r.Reason, "overloaded")
		require.Equal(t, messages.OutcomeOK, tr.wait(busy).Outcome)
		require.Equal(t, messages.OutcomeOK, tr.run("b", "x").Outcome)
	})
}

func TestNewSessionsMayWaitForAPlace(t *testing.T) {
	inTree(t, gateway.Options{Strategy: gateway.Policy{IdleTTL: time.Hour, MaxKernels: 1, MaxWaiting: 1}.Strategy()}, func(t *testing.T, tr *tree) {
		a := tr.begin(call("a", "a", "sleep 1m"))
		time.Sleep(5 * time.Second)
		b := tr.begin(call("b", "b", "x"))
		time.Sleep(5 * time.Second)
		require.Equal(t, messages.OutcomeNotStarted, tr.run("c", "x").Outcome)
		tr.wait(a)
		require.Equal(t, messages.OutcomeOK, tr.wait(b).Outcome)
	})
}

func TestAPerCallKernelIsAlwaysEnded(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		for i := range 3 {
			exec := call(fmt.Sprint(i), "a", "x")
			exec.Mode = messages.ModePerCall
			r := tr.wait(tr.begin(exec))
			require.Equal(t, messages.StateFresh, r.State)
			require.Empty(t, r.Reason)
			time.Sleep(time.Second)
			require.EqualValues(t, i+1, tr.ended.Load())
		}
	})
}

func TestResetGivesWaitingCallsANewKernel(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("a", "x")
		exec := call("r", "a", "x")
		exec.Reset = true
		r := tr.wait(tr.begin(exec))
		require.Equal(t, messages.StateFresh, r.State)
		require.Equal(t, string(messages.ExitReset), r.Reason)

		running := tr.begin(call("running", "a", "sleep 1h"))
		waiting := tr.begin(call("waiting", "a", "x"))
		time.Sleep(5 * time.Second)
		tr.ask(messages.Reset{Key: key("a")})
		require.Equal(t, messages.OutcomeCancelled, tr.wait(running).Outcome)
		require.Equal(t, messages.StateFresh, tr.wait(waiting).State)
	})
}

func TestAResetForgivesASessionThatWasGivenUp(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		giveUp := func() {
			tr.run("a", "panic")
			tr.run("a", "panic")
			r := tr.run("a", "x")
			require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
			require.Equal(t, messages.RefusedExhausted, r.Refusal)
			require.Empty(t, r.State, "nothing ran: no claim")
			require.Contains(t, r.Reason, "its variables are gone")
			require.Contains(t, r.Reason, "as told")
			require.Contains(t, r.Reason, "reset the session")
		}
		giveUp()
		exec := call("reset", "a", "x")
		exec.Reset = true
		require.Equal(t, messages.OutcomeOK, tr.wait(tr.begin(exec)).Outcome)
		giveUp()
		tr.ask(messages.Reset{Key: key("a")})
		require.Equal(t, messages.OutcomeOK, tr.run("a", "x").Outcome)
	})
}

func TestCloseForgetsTheSession(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		running := tr.begin(call("running", "a", "sleep 1h"))
		waiting := tr.begin(call("waiting", "a", "x"))
		time.Sleep(5 * time.Second)
		tr.ask(messages.Close{Key: key("a")})
		require.Equal(t, messages.OutcomeCancelled, tr.wait(running).Outcome)
		w := tr.wait(waiting)
		require.Equal(t, messages.OutcomeNotStarted, w.Outcome)
		require.Contains(t, w.Reason, "closed")
		time.Sleep(5 * time.Second)
		r := tr.run("a", "x")
		require.Equal(t, messages.StateFresh, r.State)
	})
}

func TestAnActorThatPanicsLosesOnlyItsCall(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("a", "x")
		bad := tr.begin(call("bad", "a", "panic"))
		next := tr.begin(call("next", "a", "x"))
		r := tr.wait(bad)
		require.NotEqual(t, messages.OutcomeOK, r.Outcome)
		require.Equal(t, messages.StateLost, r.State)
		require.Equal(t, messages.StateFresh, tr.wait(next).State)
	})
}

func TestTheLastOwnerThatLeavesEndsTheSession(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		for _, c := range []struct{ session, owner string }{{"shared", "x"}, {"shared", "y"}, {"mine", "x"}, {"nobodys", ""}} {
			exec := call(messages.NewID(), c.session, "x")
			exec.Owner = c.owner
			require.Equal(t, messages.OutcomeOK, tr.wait(tr.begin(exec)).Outcome)
		}
		tr.ask(messages.ReleaseOwner{Owner: "x"})
		tr.ask(messages.ReleaseOwner{Owner: "x"}) // again: nothing left to release
		time.Sleep(time.Second)
		require.EqualValues(t, 1, tr.ended.Load(), "the session that only x used")
		require.Equal(t, messages.StateKept, tr.run("shared", "x").State)
		tr.ask(messages.ReleaseOwner{Owner: "y"})
		time.Sleep(time.Second)
		require.EqualValues(t, 2, tr.ended.Load())
		require.Equal(t, messages.StateFresh, tr.run("shared", "x").State)
		require.Equal(t, messages.StateKept, tr.run("nobodys", "x").State)
	})
}

// An owner owns a kernel, not a name: who used the session before its kernel
// was evicted does not keep the next one.
func TestAnEvictedKernelHasNoOwners(t *testing.T) {
	inTree(t, gateway.Options{Strategy: gateway.Policy{IdleTTL: time.Minute}.Strategy()}, func(t *testing.T, tr *tree) {
		use := func(owner string) {
			exec := call(messages.NewID(), "shared", "x")
			exec.Owner = owner
			require.Equal(t, messages.OutcomeOK, tr.wait(tr.begin(exec)).Outcome)
		}
		use("x")
		use("y")
		time.Sleep(2 * time.Minute)
		require.EqualValues(t, 1, tr.ended.Load(), "it is evicted")
		use("x")
		tr.ask(messages.ReleaseOwner{Owner: "x"})
		time.Sleep(time.Second)
		require.EqualValues(t, 2, tr.ended.Load())
	})
}

func TestOneOwnerCannotTakeAllPlaces(t *testing.T) {
	inTree(t, gateway.Options{Strategy: gateway.Policy{MaxKernels: 4, MaxPerOwner: 2}.Strategy()}, func(t *testing.T, tr *tree) {
		begin := func(owner string, n int, code string) supervisor.Reply[messages.Result] {
			exec := call(messages.NewID(), fmt.Sprint(owner, n), code)
			exec.Owner = owner
			return tr.begin(exec)
		}
		a, b := begin("greedy", 1, "sleep 1h"), begin("greedy", 2, "sleep 1h")
		time.Sleep(5 * time.Second)
		require.Equal(t, messages.OutcomeNotStarted, tr.wait(begin("greedy", 3, "x")).Outcome)
		require.Equal(t, messages.OutcomeOK, tr.wait(begin("modest", 1, "x")).Outcome)
		tr.wait(a)
		tr.wait(b)
		require.Equal(t, messages.OutcomeOK, tr.wait(begin("greedy", 3, "x")).Outcome, "an idle one makes room")
	})
}

func TestADrainLetsRunningCallsEnd(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		running := tr.begin(call("running", "a", "sleep 1m"))
		waiting := tr.begin(call("waiting", "a", "x"))
		time.Sleep(5 * time.Second)
		begin := time.Now()
		tr.ask(messages.Drain{})
		require.InDelta(t, 56, time.Since(begin).Seconds(), 1.1)
		require.Equal(t, messages.OutcomeOK, tr.wait(running).Outcome)
		for _, r := range []messages.Result{tr.wait(waiting), tr.run("b", "x")} {
			require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
			require.Contains(t, r.Reason, "shutting down")
		}
		tr.ask(messages.Drain{}) // nothing runs: answered at once
	})
}

func TestExhaustionMakesRoomAndTriesOnce(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("idle", "x")
		tr.run("pinned", "x")
		tr.ask(messages.Pin{Key: key("pinned"), Pinned: true})
		tr.refuse.Store(1)
		require.Equal(t, messages.OutcomeOK, tr.run("new", "x").Outcome)
		require.Equal(t, messages.StateKept, tr.run("pinned", "x").State)
		again := tr.run("idle", "x")
		require.Equal(t, messages.StateFresh, again.State)
		require.Equal(t, string(messages.ExitEvicted), again.Reason)

		tr.refuse.Store(2)
		r := tr.run("another", "x")
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		require.Contains(t, r.Reason, "too many open files")
	})
	// A Kernel Gateway that other hosts have filled.
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.refusal = errors.New("POST /api/kernels: status 403: the server's kernel limit is reached")
		tr.run("idle", "x")
		tr.refuse.Store(1)
		require.Equal(t, messages.OutcomeOK, tr.run("new", "x").Outcome)
		require.Equal(t, string(messages.ExitEvicted), tr.run("idle", "x").Reason)
	})
}

func TestShutdownAnswersEveryCall(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		var replies []supervisor.Reply[messages.Result]
		for i := range 3 {
			for j := range 3 {
				replies = append(replies, tr.begin(call(fmt.Sprint(i, j), fmt.Sprint(i), "sleep 1h")))
			}
		}
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		tr.system.Shutdown(ctx)
		for _, r := range replies {
			res := tr.wait(r)
			require.Contains(t, []messages.Outcome{messages.OutcomeCancelled, messages.OutcomeNotStarted}, res.Outcome)
		}
	})
}
