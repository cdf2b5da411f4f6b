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
	up    bool
}

type (
	ready struct{}
	held  struct{}
	over  struct{}
)

func (k *scripted) Init(ctx *supervisor.Ctx) error {
	if k.tree.refuse.Add(-1) >= 0 {
		if k.tree.refusal != nil {
			return k.tree.refusal
		}
		return errors.New("fork: too many open files")
	}
	if n := k.tree.live.Add(1); k.tree.places > 0 && n > k.tree.places {
		k.tree.live.Add(-1)
		return errors.New("fork: too many open files")
	}
	k.up = true
	if k.tree.away != nil {
		ctx.Note(supervisor.Facts{Detail: "waiting for the shared process, which is started again: it was killed"})
		ctx.After(*k.tree.away, held{})
	}
	ctx.After(k.start, ready{})
	return nil
}

func (k *scripted) Handle(ctx *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case held:
		ctx.Hold(true)
	case ready:
		ctx.Hold(false)
		ctx.Up()
	case supervisor.Work:
		exec, is := m.Msg.(messages.Execute)
		if h, is := m.Msg.(messages.Hibernate); is && h.Idle {
			k.tree.asked.Add(1)
		}
		if !is { // copies of it, or to keep it on disk
			ctx.Finish(m, true)
			return nil
		}
		k.work = &m
		if len(exec.Cells) == 0 {
			exec.Cells = []messages.Cell{{Code: "vanish"}}
		}
		word, rest, _ := strings.Cut(exec.Cells[0].Code, " ")
		switch word {
		case "sleep":
			d, err := time.ParseDuration(rest)
			if err != nil {
				return err
			}
			ctx.After(d, over{})
		case "beat": // once, and then no more
			ctx.Beat()
			k.finish(ctx, messages.OutcomeOK)
		case "hang":
			ctx.Beat()
		case "hold":
			ctx.Note(supervisor.Facts{RSS: 2 << 20})
			k.finish(ctx, messages.OutcomeOK)
		case "vanish": // without a word about the call
			k.work = nil
			panic("as told")
		case "panic":
			panic("as told")
		case "limit":
			return fmt.Errorf("the kernel died: %w", &messages.ResourceLimitExceeded{Limit: messages.Limit(rest), Stderr: "its own"})
		default:
			k.finish(ctx, messages.OutcomeOK)
		}
	case over:
		if k.work != nil {
			k.finish(ctx, messages.OutcomeOK)
		}
	case messages.Interrupt:
		if k.work != nil && (m.Exec == "" || m.Exec == k.work.Msg.(messages.Execute).ID) {
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
	if k.up {
		time.Sleep(time.Duration(k.tree.stop.Load()))
		k.tree.live.Add(-1)
	}
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
	asked  atomic.Int64 // how often an idle kernel was asked to keep its session on disk
	refuse atomic.Int64 // how many of the next starts fail
	// refusal is what they fail with, set before the first. nil: an error of fork.
	refusal error
	start   time.Duration
	// places is how many kernels the machine has room for, those that end included, 0 for
	// any number; live is how many there are. stop is how long an end takes.
	places int64
	live   atomic.Int64
	stop   atomic.Int64         // a time.Duration
	users  []string             // for whom a kernel is restored
	specs  []gateway.KernelSpec // of the kernels that were made, guarded by mu
	away   *time.Duration       // after how long a start waits for the shared process; nil: it does not
}

func inTree(t *testing.T, o gateway.Options, f func(*testing.T, *tree)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tr := &tree{t: t, start: time.Second}
		o.Name = "gateway"
		o.NewKernel = func(k gateway.KernelSpec) supervisor.Behaviour {
			tr.mu.Lock()
			tr.specs = append(tr.specs, k)
			tr.mu.Unlock()
			if k.Served != nil {
				k.Served.Add(tr.users...)
			}
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
			if node, found, err := system.Child(ctx, "gateway"); err == nil && (!found || node.LastExit != nil) {
				t.Errorf("the gateway has ended: %+v", node)
			}
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
	answer, err := supervisor.Ask[any](context.Background(), tr.ref(), msg)
	require.NoError(tr.t, err)
	yes, _ := answer.(bool)
	return yes
}
