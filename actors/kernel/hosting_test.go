package kernel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// hosted begins a call that may ask and call its host.
func (tr *tree) hosted(id string, calls messages.HostCalls, out *fakeOutlet, code ...string) supervisor.Reply[messages.Result] {
	exec := messages.Execute{ID: id, Key: messages.SessionKey{Session: "s", Cwd: "/w"}, Out: out, HostCalls: calls, AllowStdin: true, InputTimeout: time.Minute}
	for _, c := range code {
		exec.Cells = append(exec.Cells, messages.Cell{Code: c})
	}
	return tr.begins(exec)
}

// up starts the kernel, which takes its time.
func (tr *tree) up() { tr.run("count") }

func TestAQuestionIsAnswered(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		calls, out := &fakeHostCalls{}, &fakeOutlet{}
		r := tr.wait(tr.hosted("a", calls, out, "count", "ask 1s; ask 2s"))
		require.Equal(t, ok, r.Outcome)
		require.Equal(t, "answeredanswered", r.Cells[1].Output)
		want := []messages.InputRequest{
			{ID: "a-1-q1s", Prompt: "1s", IdleTimeoutMS: 60_000},
			{ID: "a-1-q2s", Prompt: "2s", IdleTimeoutMS: 60_000},
		}
		require.Empty(t, cmp.Diff(want, calls.asked))
		var told []messages.InputRequest
		for _, e := range out.events {
			if q, is := e.(messages.InputRequest); is {
				require.Equal(t, 1, q.Cell)
				q.Position = messages.Position{}
				told = append(told, q)
			}
		}
		require.Empty(t, cmp.Diff(want, told), "who watches the call reads the id to answer")
		require.Zero(t, calls.waits())
	})
}

func TestWithoutAHostNobodyIsAsked(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		require.Equal(t, ok, tr.wait(tr.hosted("a", nil, &fakeOutlet{}, "count")).Outcome)
		require.False(t, tr.backend.last().request.AllowStdin, "a cell may ask only where there can be an answer")

		r := tr.wait(tr.hosted("a", nil, &fakeOutlet{}, "call work"))
		require.Equal(t, raised, r.Outcome)
		require.Equal(t, "HostCallError", r.Cells[0].Error.Name)
		require.Equal(t, "this call has no host functions", r.Cells[0].Error.Message)
	})
}

func TestAHostCallIsTold(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		calls, out := &fakeHostCalls{}, &fakeOutlet{}
		r := tr.wait(tr.hosted("a", calls, out, "call work 2s; call fail"))
		require.Equal(t, raised, r.Outcome)
		require.Equal(t, `"work 2s"`, r.Cells[0].Output)
		require.Equal(t, "KeyError", r.Cells[0].Error.Name)
		var steps []messages.HostCallStep
		for _, e := range out.events {
			if s, is := e.(messages.HostCallStep); is {
				steps = append(steps, s)
			}
		}
		require.Empty(t, cmp.Diff([]messages.HostCallStep{
			{Call: "a-0-c1", Kind: messages.CallTool, Name: "work 2s", Phase: messages.CallStarted},
			{Call: "a-0-c1", Kind: messages.CallTool, Name: "work 2s", Phase: messages.CallCompleted, DurationMS: 2000},
			{Call: "a-0-c2", Kind: messages.CallTool, Name: "fail", Phase: messages.CallStarted},
			{Call: "a-0-c2", Kind: messages.CallTool, Name: "fail", Phase: messages.CallFailed, Error: &messages.HostError{Type: "KeyError", Message: "no"}},
		}, steps))
		require.Contains(t, out.types(), "host_event")
	})
}

// A call that its cell does not wait for ends with it, and none is served afterwards.
func TestTheEndOfACellEndsItsCalls(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.up()
		calls, begin := &fakeHostCalls{}, time.Now()
		r := tr.wait(tr.hosted("a", calls, &fakeOutlet{}, "leave hang; sleep 1s"))
		require.Equal(t, ok, r.Outcome)
		require.Equal(t, 1100*time.Millisecond, time.Since(begin), "what the cell has begun is joined")
		require.Len(t, calls.called, 1)
		require.ErrorContains(t, calls.endedFor[0], "the cell has ended")
		i := tr.backend.last()
		require.Equal(t, "CancelledError", (<-i.left).Error.Type)

		late := i.request.Call(t.Context(), messages.HostCall{Kind: messages.CallTool, Name: "work 1s"})
		require.Equal(t, "the cell that made the call has ended", late.Error.Message)
		require.Len(t, calls.called, 1)
	})
}

func TestAnAnswerIsForItsOwnQuestion(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.up()
		calls := &fakeHostCalls{}
		reply := tr.hosted("a", calls, &fakeOutlet{}, "ask 1h")
		time.Sleep(time.Second)
		tr.ref().Tell(messages.Interrupt{Exec: "a", Cause: messages.CauseCancelled})
		r := tr.wait(reply)
		require.Equal(t, cancelled, r.Outcome)
		require.Equal(t, messages.StateKept, r.State)
		require.Zero(t, calls.waits(), "the question is closed")

		begin := time.Now()
		require.Equal(t, "answered", tr.wait(tr.hosted("b", calls, &fakeOutlet{}, "ask 5s")).Cells[0].Output)
		require.Equal(t, 5*time.Second, time.Since(begin))
	})
}

// What a cell waits for when its kernel goes, ends with it.
func TestAKernelThatGoesEndsWhatItWaitsFor(t *testing.T) {
	for name, tc := range map[string]struct {
		code    string
		end     func(*tree)
		outcome messages.Outcome
	}{
		"a question, death":          {"ask 1h", func(tr *tree) { tr.backend.last().die() }, isLost},
		"a call, death":              {"call work 1h", func(tr *tree) { tr.backend.last().die() }, isLost},
		"a call that pauses, death":  {"call wait 1h", func(tr *tree) { tr.backend.last().die() }, isLost},
		"several, death":             {"both work 1h,wait 1h", func(tr *tree) { tr.backend.last().die() }, isLost},
		"a call that hangs, death":   {"call hang", func(tr *tree) { tr.backend.last().die() }, isLost},
		"a question, reset":          {"ask 1h", reset, cancelled},
		"a call that hangs, reset":   {"call hang", reset, cancelled},
		"a call, the host leaves":    {"call work 1h", cancel, cancelled},
		"a call that hangs, cancels": {"call hang", cancel, cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
				tr.up()
				calls := &fakeHostCalls{}
				reply := tr.hosted("a", calls, &fakeOutlet{}, tc.code, "count")
				time.Sleep(time.Second)
				synctest.Wait()
				require.NotZero(t, calls.waits())
				begin := time.Now()
				tc.end(tr)
				r := tr.wait(reply)
				require.LessOrEqual(t, time.Since(begin), 200*time.Millisecond)
				require.Equal(t, []messages.Outcome{tc.outcome, notStarted}, outcomes(r))
				synctest.Wait()
				calls.mu.Lock()
				defer calls.mu.Unlock()
				require.Zero(t, calls.open, "something still waits")
				require.Len(t, calls.endedFor, calls.most)
			})
		})
	}
}

func reset(tr *tree) {
	_, err := supervisor.Ask[bool](context.Background(), tr.ref(), messages.Reset{})
	require.NoError(tr.t, err)
}

func cancel(tr *tree) {
	tr.ref().Tell(messages.Interrupt{Exec: "a", Cause: messages.CauseCancelled})
}

func TestANeglectedQuestionLeavesTheDeadlineAlone(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.up()
		begin := time.Now()
		reply := tr.hosted("a", &fakeHostCalls{}, &fakeOutlet{}, "sleep 1s; try ask never; hang")
		time.AfterFunc(10*time.Second, func() {
			tr.ref().Tell(messages.Interrupt{Exec: "a", Cause: messages.CauseTimeout, Active: true})
		})
		r := tr.wait(reply)
		require.Equal(t, timeout, r.Outcome)
		require.Equal(t, messages.StateKept, r.State)
		require.Equal(t, 70*time.Second, time.Since(begin), "a minute of waiting and ten seconds of work")

		r = tr.wait(tr.hosted("b", &fakeHostCalls{}, &fakeOutlet{}, "ask never"))
		require.Equal(t, "InputTimeout", r.Cells[0].Error.Name)
	})
}
