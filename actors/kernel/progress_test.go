package kernel_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// A result says how far its call came, and whose time it was that ended it.
func TestAResultSaysHowFarItsCallCame(t *testing.T) {
	const timeout = time.Minute
	for name, tt := range map[string]struct {
		first bool // it is the first call of its session
		code  []string
		end   func(*tree)
		want  messages.Progress
	}{
		"it ends": {true, []string{"count", "count"}, nil, messages.Progress{Reach: messages.ReachEnded, Begun: 2, Cells: 2, First: true}},
		"it raises": {
			false,
			[]string{"count", "raise", "count"},
			nil,
			messages.Progress{Reach: messages.ReachBegun, Begun: 2, Cells: 3},
		},
		"its own timeout": {
			false,
			[]string{"hang", "count"},
			func(tr *tree) { tr.ref().Tell(messages.Interrupt{Exec: "call", Cause: messages.CauseTimeout}) },
			messages.Progress{Reach: messages.ReachBegun, Begun: 1, Cells: 2, Stop: messages.StopTimeout, Limit: timeout},
		},
		"the caller's deadline": {
			false,
			[]string{"hang"},
			func(tr *tree) {
				tr.ref().Tell(messages.Interrupt{Exec: "call", Cause: messages.CauseTimeout, Deadline: time.Second})
			},
			messages.Progress{Reach: messages.ReachBegun, Begun: 1, Cells: 1, Stop: messages.StopDeadline, Limit: time.Second},
		},
		"cancelled": {
			true,
			[]string{"hang"},
			func(tr *tree) { tr.ref().Tell(messages.Interrupt{Exec: "call"}) },
			messages.Progress{Reach: messages.ReachBegun, Begun: 1, Cells: 1, Stop: messages.StopCancel, First: true},
		},
		"reset": {
			false,
			[]string{"hang"},
			func(tr *tree) { _, _ = supervisor.Ask[bool](context.Background(), tr.ref(), messages.Reset{}) },
			messages.Progress{Reach: messages.ReachBegun, Begun: 1, Cells: 1, Stop: messages.StopReset},
		},
		"its kernel dies": {false, []string{"die"}, nil, messages.Progress{Reach: messages.ReachBegun, Begun: 1, Cells: 1, Stop: messages.StopDied}},
		"the session's runtime": {
			false,
			[]string{"sleep 1h"},
			func(*tree) {}, // it comes by itself
			messages.Progress{Reach: messages.ReachBegun, Begun: 1, Cells: 1, Stop: messages.StopRuntime, Limit: 2 * timeout},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, kernel.Options{CellRuntime: 2 * timeout}, func(t *testing.T, tr *tree) {
				if !tt.first {
					tr.run("count")
				}
				exec := messages.Execute{ID: "call", Key: messages.SessionKey{Session: "s", Cwd: "/w"}, Out: &fakeOutlet{}, Timeout: timeout}
				for _, c := range tt.code {
					exec.Cells = append(exec.Cells, messages.Cell{Code: c})
				}
				reply := tr.begins(exec)
				if tt.end != nil {
					time.Sleep(time.Second)
					tt.end(tr)
				}
				require.Equal(t, tt.want, tr.wait(reply).Progress)
			})
		})
	}
}

// What a call waited for is told apart: a place and the kernel's start for the first one,
// its turn for the next, and a processor for one that is stopped.
func TestAResultSaysWhatItsCallWaitedFor(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.backend.startDelay = 3 * time.Second
		made := func(id, code string) messages.Execute {
			return messages.Execute{ID: id, Key: messages.SessionKey{Session: "s", Cwd: "/w"}, Out: &fakeOutlet{}, Made: time.Now(), Cells: []messages.Cell{{Code: code}}}
		}
		exec := made("first", "sleep 10s")
		exec.Made = exec.Made.Add(-time.Second) // it had no place until now
		first := tr.begins(exec)
		time.Sleep(5 * time.Second)
		second := tr.begins(made("second", "hang"))
		require.Equal(t, messages.Waited{Place: time.Second, Kernel: 3 * time.Second}, tr.wait(first).Progress.Waited)
		time.Sleep(time.Second) // it is being watched
		tr.backend.last().starve(5 * time.Second)
		time.Sleep(10 * time.Second)
		tr.ref().Tell(messages.Interrupt{Exec: "second", Cause: messages.CauseTimeout, Deadline: time.Minute})
		waited := tr.wait(second).Progress.Waited
		require.Equal(t, 8*time.Second, waited.Turn)
		require.InDelta(t, 5*time.Second, waited.Processor, float64(time.Second))
		require.Zero(t, waited.Place+waited.Kernel)
	})
}
