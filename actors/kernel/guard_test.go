package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// fakeGuard knows the interpreters that have begun, and what it is told to have ended
// them for.
type fakeGuard struct {
	mu    sync.Mutex
	began []kernel.Info
	stop  func(messages.ResourceLimitExceeded)
	met   *messages.ResourceLimitExceeded
	at    time.Time
	// ended are the interpreters that were themselves ended, by process id.
	ended map[int]*messages.ResourceLimitExceeded
	// stopped are the cells that have ended after they were stopped.
	stopped []string
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

func (g *fakeGuard) Ended(pid int, _ time.Time) *messages.ResourceLimitExceeded {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended[pid]
}

func (g *fakeGuard) Stopped(pid int, met messages.ResourceLimitExceeded, lost bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = append(g.stopped, fmt.Sprint(pid, " ", met.Limit, " ", lost))
}

// ends ends an interpreter for a limit.
func (g *fakeGuard) ends(i *fakeInterp, limit messages.Limit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended == nil {
		g.ended = map[int]*messages.ResourceLimitExceeded{}
	}
	g.ended[i.Info().PID] = &messages.ResourceLimitExceeded{Limit: limit, Detail: "the workspace w had too much"}
	i.die()
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
		require.Equal(t, []string{"1001 processes false"}, g.stopped, "before its result")

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

// fails makes a call that no kernel takes, and returns why.
func (tr *tree) fails(code ...string) error {
	tr.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_, err := tr.begin("call", &fakeOutlet{}, code...).Wait(ctx)
	require.Error(tr.t, err)
	return err
}

// TestAKernelThatIsEndedForALimitIsSaidToBe has one ended at each moment of its life at
// which a call learns of it otherwise: what the call gets, or the exit of the kernel, has
// the limit.
func TestAKernelThatIsEndedForALimitIsSaidToBe(t *testing.T) {
	limited := func(t *testing.T, r messages.Result) {
		t.Helper()
		require.NotNil(t, r.Exceeded, r.Reason)
		require.Equal(t, messages.LimitMemory, r.Exceeded.Limit)
		require.Equal(t, "ResourceLimitExceeded: memory: the workspace w had too much", r.Reason)
		require.Equal(t, messages.StateLost, r.State)
	}
	t.Run("the decision was made before the cell began", func(t *testing.T) {
		g := &fakeGuard{}
		inTree(t, kernel.Options{Guard: g}, func(t *testing.T, tr *tree) {
			require.Equal(t, ok, tr.run("count").Outcome)
			call := tr.begin("call", &fakeOutlet{}, "hang")
			time.Sleep(time.Second)
			g.ends(tr.backend.last(), messages.LimitMemory) // Met knows nothing since the cell began
			r := tr.wait(call)
			require.Equal(t, isLost, r.Outcome)
			limited(t, r)
			require.Nil(t, tr.run("count").Exceeded, "that was another kernel")
		})
	})
	t.Run("when its last cell had ended", func(t *testing.T) {
		g := &fakeGuard{}
		inTree(t, kernel.Options{Guard: g}, func(t *testing.T, tr *tree) {
			require.Equal(t, ok, tr.run("count").Outcome)
			call := tr.begin("call", &fakeOutlet{flush: 2 * time.Second}, "count")
			time.Sleep(time.Second)
			g.ends(tr.backend.last(), messages.LimitMemory)
			r := tr.wait(call)
			require.Equal(t, ok, r.Outcome)
			limited(t, r)
		})
	})
	t.Run("between calls", func(t *testing.T) {
		g := &fakeGuard{}
		inTree(t, kernel.Options{Guard: g}, func(t *testing.T, tr *tree) {
			require.Equal(t, ok, tr.run("count").Outcome)
			g.ends(tr.backend.last(), messages.LimitMemory)
			r := tr.run("count")
			require.Equal(t, []any{ok, messages.StateFresh}, []any{r.Outcome, r.State})
			require.Contains(t, r.Reason, "ResourceLimitExceeded: memory: the workspace w had too much")
			require.Nil(t, r.Exceeded, "it ended nothing of this call")
		})
	})
	t.Run("again and again", func(t *testing.T) {
		g := &fakeGuard{}
		inTree(t, kernel.Options{Guard: g}, func(t *testing.T, tr *tree) {
			require.Equal(t, ok, tr.run("count").Outcome)
			for range 2 {
				call := tr.begin("call", &fakeOutlet{}, "hang")
				time.Sleep(time.Second)
				g.ends(tr.backend.last(), messages.LimitMemory)
				limited(t, tr.wait(call))
			}
			err := tr.fails("count")
			require.ErrorIs(t, err, supervisor.ErrExhausted)
			met, is := errors.AsType[*messages.ResourceLimitExceeded](err)
			require.True(t, is, err)
			require.Equal(t, messages.LimitMemory, met.Limit)
		})
	})
	t.Run("while it starts", func(t *testing.T) {
		const pid = 4711
		g := &fakeGuard{ended: map[int]*messages.ResourceLimitExceeded{pid: {Limit: messages.LimitMemory}}}
		backend := &fakeBackend{startErr: fmt.Errorf("start a session: %w", &kernel.LostError{Reason: "it was killed", PID: pid})}
		inTree(t, kernel.Options{Guard: g, Backend: backend}, func(t *testing.T, tr *tree) {
			err := tr.fails("count")
			require.ErrorIs(t, err, kernel.ErrStart)
			met, is := errors.AsType[*messages.ResourceLimitExceeded](err)
			require.True(t, is, err)
			require.Equal(t, messages.LimitMemory, met.Limit)
		})
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
