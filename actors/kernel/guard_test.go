package kernel_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
)

// fakeGuard knows the interpreters that have begun, and what it is told to have ended
// them for.
type fakeGuard struct {
	mu    sync.Mutex
	began []kernel.Info
	stop  func(messages.ResourceLimitExceeded)
	met   *messages.ResourceLimitExceeded
	at    time.Time
}

func (g *fakeGuard) Began(i kernel.Info, stop func(messages.ResourceLimitExceeded)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.began, g.stop = append(g.began, i), stop
}

func (g *fakeGuard) Met(_ int, since time.Time, _ *messages.ErrorDetails) *messages.ResourceLimitExceeded {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at.Before(since) {
		return nil
	}
	return g.met
}

func (g *fakeGuard) after(d time.Duration, do func(func(messages.ResourceLimitExceeded))) {
	time.AfterFunc(d, func() {
		g.mu.Lock()
		stop := g.stop
		g.mu.Unlock()
		do(stop)
	})
}

func TestALimitThatIsSharedWithOthers(t *testing.T) {
	g := &fakeGuard{}
	inTree(t, kernel.Options{Guard: g}, func(t *testing.T, tr *tree) {
		require.Equal(t, ok, tr.run("count").Outcome)
		require.Equal(t, []kernel.Info{tr.backend.last().Info()}, g.began, "before its first cell")

		// A cell is stopped.
		met := messages.ResourceLimitExceeded{Limit: messages.LimitProcesses, Detail: "the workspace w had 20 processes"}
		g.after(time.Second, func(stop func(messages.ResourceLimitExceeded)) { stop(met) })
		begin := time.Now()
		r := tr.run("count", "hang", "count")
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, []messages.Outcome{ok, messages.OutcomeError, notStarted}, outcomes(r))
		require.Equal(t, messages.StateKept, r.State)
		require.Equal(t, &met, r.Exceeded)
		require.Equal(t, messages.ErrorDetails{Name: "ResourceLimitExceeded", Message: "processes: the workspace w had 20 processes"}, *r.Cells[1].Error)
		require.Empty(t, r.Progress.Stop, "no one has left, and no time was up")

		// Between calls there is nothing to stop.
		g.stop(met)
		require.Nil(t, tr.run("count").Exceeded)

		// The interpreter is ended.
		g.after(time.Second, func(func(messages.ResourceLimitExceeded)) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.met, g.at = &messages.ResourceLimitExceeded{Limit: messages.LimitMemory, Detail: "the workspace w had too much"}, time.Now()
			tr.backend.last().die()
		})
		r = tr.run("hang")
		require.Equal(t, messages.OutcomeLost, r.Outcome)
		require.Equal(t, messages.LimitMemory, r.Exceeded.Limit)
		require.Equal(t, "ResourceLimitExceeded: memory: the workspace w had too much", r.Reason)
		r = tr.run("count")
		require.Equal(t, ok, r.Outcome)
		require.Nil(t, r.Exceeded, "that was before")
		require.Len(t, g.began, 2)
	})
}

func TestEachCellMayPrintSoMuch(t *testing.T) {
	inTree(t, kernel.Options{CellOutput: 1000}, func(t *testing.T, tr *tree) {
		require.Nil(t, tr.run("print a", "print b").Exceeded)
		r := tr.run("print x; print "+string(make([]byte, 1000))+"; print zzz; hang", "count")
		require.Equal(t, []messages.Outcome{messages.OutcomeError, notStarted}, outcomes(r))
		require.Equal(t, messages.LimitOutput, r.Exceeded.Limit)
		require.Contains(t, r.Exceeded.Detail, "printed more than")
		require.Contains(t, r.Cells[0].Output, "x")
		require.Equal(t, "x\n[2 outputs were dropped: they were not taken after the call was interrupted]", r.Cells[0].Output)
		require.Nil(t, tr.run("count").Exceeded)
	})
}
