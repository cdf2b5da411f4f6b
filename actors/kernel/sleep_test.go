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
	"github.com/coppice-run/coppice/internal/owned"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// fakeSleep keeps one session; writing it takes a second.
type fakeSleep struct {
	mu       sync.Mutex
	kept     *messages.Restored        // guarded by mu
	owners   []string                  // of kept; guarded by mu
	sleeps   []kernel.Sleeper          // guarded by mu
	forgot   int                       // guarded by mu
	saves    []messages.SaveCheckpoint // guarded by mu
	sleepErr error
	unkept   []string // guarded by mu
	wakeErr  error
}

func (f *fakeSleep) Sleep(ctx context.Context, s kernel.Sleeper) (messages.Hibernated, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return messages.Hibernated{}, context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sleeps = append(f.sleeps, s)
	if f.sleepErr != nil {
		return messages.Hibernated{}, f.sleepErr
	}
	m := messages.Memory{Kept: []string{"x"}}
	f.kept, f.owners = &messages.Restored{Memory: m}, s.Owners
	return messages.Hibernated{Memory: m, Bytes: 4}, nil
}

func (f *fakeSleep) Save(ctx context.Context, s kernel.Sleeper, m messages.SaveCheckpoint) (messages.Hibernated, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return messages.Hibernated{}, context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sleepErr != nil {
		return messages.Hibernated{}, f.sleepErr
	}
	f.saves = append(f.saves, m)
	return messages.Hibernated{Memory: messages.Memory{Kept: []string{"x"}}, Bytes: 4}, nil
}

func (f *fakeSleep) Begin(messages.SessionKey, string) bool { return false }

func (f *fakeSleep) Wake(context.Context, messages.SessionKey, string, kernel.Interpreter) (kernel.Woken, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept != nil && f.wakeErr != nil {
		return kernel.Woken{}, f.wakeErr
	}
	w := kernel.Woken{Restored: f.kept, Owners: f.owners}
	f.kept, f.owners = nil, nil
	return w, nil
}

func (f *fakeSleep) Forget(messages.SessionKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgot++
}

func (f *fakeSleep) ForgetWorkspace(string) {}

func (f *fakeSleep) Unkept(_ messages.SessionKey, over bool, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unkept = append(f.unkept, fmt.Sprintf("%t %v", over, why))
}

func (f *fakeSleep) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sleeps)
}

func (tr *tree) hibernate() (messages.Hibernated, error) {
	return supervisor.Ask[messages.Hibernated](tr.t.Context(), tr.system.Ref("gateway"), messages.Hibernate{Key: messages.SessionKey{Session: "s", Cwd: "/w"}})
}

// TestHibernate: a kernel ends when its session is kept, a call that came meanwhile gets
// the next one, and the result of the first call there says what was restored.
func TestHibernate(t *testing.T) {
	t.Parallel()
	keeper := &fakeSleep{}
	inTree(t, kernel.Options{Hibernation: keeper}, func(t *testing.T, tr *tree) {
		require.Equal(t, messages.StateFresh, tr.run("count").State)
		var wg sync.WaitGroup
		wg.Go(func() {
			kept, err := tr.hibernate()
			if err != nil || kept.Bytes != 4 {
				t.Errorf("%+v %v", kept, err)
			}
		})
		time.Sleep(100 * time.Millisecond)
		r := tr.run("count")
		wg.Wait()
		require.Equal(t, messages.StateRestored, r.State)
		require.Equal(t, []string{"x"}, r.Restored.Kept)
		require.Empty(t, r.Reason)
		r = tr.run("count")
		require.Equal(t, messages.StateKept, r.State)
		require.Nil(t, r.Restored)
		require.Equal(t, 1, tr.backend.living())
	})
	require.Equal(t, 2, keeper.times(), "the end of the host keeps it once more")
	require.Nil(t, keeper.sleeps[1].Earlier, "what was lost has been told")
}

// TestSave: a session goes on while a checkpoint of it is made, and calls wait for that.
func TestSave(t *testing.T) {
	t.Parallel()
	keeper := &fakeSleep{}
	inTree(t, kernel.Options{Hibernation: keeper}, func(t *testing.T, tr *tree) {
		save := func() (messages.Hibernated, error) {
			m := messages.SaveCheckpoint{Key: messages.SessionKey{Session: "s", Cwd: "/w"}, Checkpoint: messages.CheckpointKey{Name: "one"}, Lossy: true}
			return supervisor.Ask[messages.Hibernated](t.Context(), tr.system.Ref("gateway"), m)
		}
		var refused *messages.HibernateRefused
		_, err := save()
		require.ErrorAs(t, err, &refused)
		require.Equal(t, messages.HibernateNoKernel, refused.Reason)
		tr.run("count")
		begin := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			kept, err := save()
			if err != nil || kept.Bytes != 4 {
				t.Errorf("%+v %v", kept, err)
			}
		})
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, messages.StateKept, tr.run("count").State)
		require.GreaterOrEqual(t, time.Since(begin), time.Second)
		wg.Wait()
		_, err = save()
		require.NoError(t, err)
		keeper.mu.Lock()
		keeper.sleepErr = &messages.HibernateRefused{Reason: messages.HibernateLossy, Problem: "it would lose sock"}
		keeper.mu.Unlock()
		_, err = save()
		require.ErrorAs(t, err, &refused)
		require.Equal(t, messages.HibernateLossy, refused.Reason)
		require.Equal(t, messages.StateKept, tr.run("count").State)
	})
	require.Len(t, keeper.saves, 2)
	require.True(t, keeper.saves[0].Lossy)
}

// TestHibernationRefused leaves the kernel as it was.
func TestHibernationRefused(t *testing.T) {
	t.Parallel()
	keeper := &fakeSleep{sleepErr: &messages.HibernateRefused{Reason: messages.HibernateLossy, Problem: "it would lose sock"}}
	inTree(t, kernel.Options{Hibernation: keeper}, func(t *testing.T, tr *tree) {
		tr.run("count")
		_, err := tr.hibernate()
		var refused *messages.HibernateRefused
		require.ErrorAs(t, err, &refused)
		require.Equal(t, messages.StateKept, tr.run("count").State)
	})
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.run("count")
		_, err := tr.hibernate()
		require.ErrorContains(t, err, "keeps no sessions on disk")
		require.Equal(t, messages.StateKept, tr.run("count").State)
	})
}

// TestAHibernatedSessionIsNotIdle from when it is kept until it has ended: whoever has asked
// for it hears that it is kept when it is known to end.
func TestAHibernatedSessionIsNotIdle(t *testing.T) {
	t.Parallel()
	var states []messages.ChildState // written by the one goroutine that calls the watchers
	inTree(t, kernel.Options{Hibernation: &fakeSleep{}, Backend: &fakeBackend{closeDelay: time.Second}}, func(t *testing.T, tr *tree) {
		tr.run("count")
		time.Sleep(time.Second)
		tr.system.Watch(func(e messages.Lifecycle) {
			if c, ok := e.(messages.ChildChanged); ok && c.Kind == "kernel" {
				states = append(states, c.To)
			}
		})
		begin := time.Now()
		_, err := tr.hibernate()
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(begin), "it is not waited for the end of the kernel")
	})
	require.Equal(t, []messages.ChildState{messages.ChildBusy, messages.ChildStopping, messages.ChildGone}, states)
}

// TestNothingIsNotKept: a kernel in which nothing has run would be restored in place of the
// news of what became of the one before it; one that was idle ends.
func TestNothingIsNotKept(t *testing.T) {
	t.Parallel()
	keeper := &fakeSleep{}
	inTree(t, kernel.Options{Hibernation: keeper}, func(t *testing.T, tr *tree) {
		tr.run("count")
		_, err := supervisor.Ask[bool](t.Context(), tr.ref(), messages.Reset{})
		require.NoError(t, err)
		time.Sleep(time.Second)
		for _, idle := range []bool{false, true} {
			require.Equal(t, 1, tr.backend.living())
			_, err = supervisor.Ask[messages.Hibernated](t.Context(), tr.ref(), messages.Hibernate{Idle: idle})
			refused, ok := errors.AsType[*messages.HibernateRefused](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, messages.HibernateNoKernel, refused.Reason)
			time.Sleep(time.Second)
		}
		require.Zero(t, tr.backend.living())
	})
	require.Zero(t, keeper.times())
}

// TestARefusalIsRemembered until a cell has run, where no one has asked but the session was
// idle: it is not written down again to be refused for the same.
func TestARefusalIsRemembered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason messages.HibernateReason
		times  int // it is tried, of twice for an idle session
	}{{messages.HibernateLossy, 1}, {messages.HibernateUnsupported, 1}, {messages.HibernateFailed, 2}} {
		keeper := &fakeSleep{sleepErr: &messages.HibernateRefused{Reason: tt.reason, Problem: "no"}}
		idle := messages.Hibernate{Key: messages.SessionKey{Session: "s", Cwd: "/w"}, Idle: true}
		inTree(t, kernel.Options{Hibernation: keeper}, func(t *testing.T, tr *tree) {
			tr.run("count")
			ask := func(m messages.Hibernate) {
				_, err := supervisor.Ask[messages.Hibernated](t.Context(), tr.ref(), m)
				refused, ok := errors.AsType[*messages.HibernateRefused](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, tt.reason, refused.Reason)
			}
			ask(idle)
			ask(idle)
			require.Equal(t, tt.times, keeper.times())
			ask(messages.Hibernate{Key: idle.Key})
			require.Equal(t, tt.times+1, keeper.times(), "someone has asked for it")
			tr.run("count")
			ask(idle)
			require.Equal(t, tt.times+2, keeper.times(), "a cell has run")
		})
	}
}

// TestWhatIsNotKeptIsHeardOf by who keeps sessions, also where no one waits for an answer: the end
// of a host, of a session that is idle and of one in which a cell runs, and an idle session that
// goes on. Who has asked has the answer.
func TestWhatIsNotKeptIsHeardOf(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for name, tt := range map[string]struct {
		do   func(t *testing.T, tr *tree)
		want []string
	}{
		"the end": {func(_ *testing.T, tr *tree) { tr.run("count") }, []string{"true the disk is full"}},
		"nothing": {func(_ *testing.T, tr *tree) { tr.run() }, nil},
		"asked":   {func(_ *testing.T, tr *tree) { tr.run("count"); _, _ = tr.hibernate() }, []string{"true the disk is full"}},
		"idle too": {func(t *testing.T, tr *tree) {
			tr.run("count")
			_, err := supervisor.Ask[messages.Hibernated](t.Context(), tr.ref(), messages.Hibernate{Idle: true})
			require.ErrorIs(t, err, full)
		}, []string{"false the disk is full", "true the disk is full"}},
	} {
		keeper := &fakeSleep{sleepErr: full}
		inTree(t, kernel.Options{Hibernation: keeper}, tt.do)
		require.Equal(t, tt.want, keeper.unkept, name)
	}
}

// TestTheEndSaysWhatBecameOfTheState, kept or not.
func TestTheEndSaysWhatBecameOfTheState(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"its state is kept on disk":                                      nil,
		"its state is lost, and not kept on disk: it would lose sock":    &messages.HibernateRefused{Reason: messages.HibernateLossy, Problem: "it would lose sock"},
		"its state is lost, and not kept on disk: the disk is not there": errors.New("the disk is not there"),
	} {
		var gone []string // written by the one goroutine that calls the watchers
		inTree(t, kernel.Options{Hibernation: &fakeSleep{sleepErr: err}}, func(_ *testing.T, tr *tree) {
			tr.system.Watch(func(e messages.Lifecycle) {
				if c, ok := e.(messages.ChildChanged); ok && c.Kind == "kernel" && c.To == messages.ChildGone {
					gone = append(gone, c.Exit.Reason)
				}
			})
			tr.run("count")
		})
		require.Len(t, gone, 1)
		require.Contains(t, gone[0], want)
	}
}

// TestRestoreFails: no call runs in a kernel without what is kept, and what is kept stays.
func TestRestoreFails(t *testing.T) {
	t.Parallel()
	kept := &messages.Restored{}
	keeper := &fakeSleep{kept: kept, wakeErr: errors.New("its record was changed")}
	inTree(t, kernel.Options{Hibernation: keeper}, func(t *testing.T, tr *tree) {
		_, err := supervisor.Ask[messages.Result](t.Context(), tr.system.Ref("gateway"), messages.Execute{ID: "1", Out: &fakeOutlet{}, Cells: []messages.Cell{{Code: "count"}}})
		require.ErrorContains(t, err, "its record was changed")
		require.ErrorContains(t, err, "reset the session to start over without it")
		require.Zero(t, tr.backend.living())
		require.Same(t, kept, keeper.kept)
	})
	require.Same(t, kept, keeper.kept)
}

// TestResetIsNotKept: a kernel that ends because its session starts over is not written
// down, and one in which nothing has run neither.
func TestResetIsNotKept(t *testing.T) {
	t.Parallel()
	keeper := &fakeSleep{}
	inTree(t, kernel.Options{Hibernation: keeper}, func(t *testing.T, tr *tree) {
		tr.run("count")
		_, err := supervisor.Ask[bool](t.Context(), tr.system.Ref("gateway"), messages.Reset{})
		require.NoError(t, err)
		require.Equal(t, messages.StateFresh, tr.run().State)
	})
	require.Zero(t, keeper.times())
	inTree(t, kernel.Options{Hibernation: &fakeSleep{}, Once: true}, func(t *testing.T, tr *tree) { tr.run("count") })
}

// TestWhoseASleepingSessionIs: of all whose calls it has served, however often it was
// restored since, and of everyone when one of them had no owner.
func TestWhoseASleepingSessionIs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kept  []string // the owners of what it is restored from, nil: nothing is kept
		calls []string // the owners of the calls that it serves
		want  []string
	}{
		"one":                            {nil, []string{"a"}, []string{"a"}},
		"without an owner":               {nil, []string{""}, []string{""}},
		"with one and without":           {nil, []string{"a", ""}, []string{"", "a"}},
		"restored by one of two":         {[]string{"a", "b"}, []string{"a"}, []string{"a", "b"}},
		"restored, and its call is gone": {[]string{"a", "b"}, nil, []string{"a", "b"}},
		"restored, and it is everyone's": {[]string{"", "a"}, []string{"a"}, []string{"", "a"}},
		"restored from before owners":    {[]string{}, []string{"a"}, []string{"", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keeper := &fakeSleep{}
			if tt.kept != nil {
				keeper.kept, keeper.owners = &messages.Restored{}, tt.kept
			}
			inTree(t, kernel.Options{Hibernation: keeper, Owner: "a"}, func(t *testing.T, tr *tree) {
				if len(tt.calls) == 0 { // whoever made the call that starts the kernel does not wait for it
					w, _, err := supervisor.Begin[messages.Result](tr.ref(), messages.Execute{ID: "1", Owner: "a", Out: &fakeOutlet{}, Cells: []messages.Cell{{Code: "count"}}})
					require.NoError(t, err)
					w.Settle(messages.Result{})
					time.Sleep(time.Second)
				}
				for _, owner := range tt.calls {
					require.Equal(t, messages.OutcomeOK, tr.wait(tr.begins(messages.Execute{ID: "1", Owner: owner, Out: &fakeOutlet{}, Cells: []messages.Cell{{Code: "count"}}})).Outcome)
				}
				_, err := tr.hibernate()
				require.NoError(t, err)
			})
			require.Len(t, keeper.sleeps, 1)
			require.Equal(t, tt.want, keeper.sleeps[0].Owners)
		})
	}
}

// TestARestartForgetsNoOwner: those who used the session before may have what it is kept
// with afterwards.
func TestARestartForgetsNoOwner(t *testing.T) {
	t.Parallel()
	keeper, served := &fakeSleep{}, new(owned.Owners)
	inTree(t, kernel.Options{Hibernation: keeper, Served: served}, func(t *testing.T, tr *tree) {
		for _, owner := range []string{"a", "b"} {
			tr.wait(tr.begins(messages.Execute{ID: "1", Owner: owner, Out: &fakeOutlet{}, Cells: []messages.Cell{{Code: "count"}}}))
			_, err := supervisor.Ask[bool](t.Context(), tr.system.Ref("gateway"), messages.Reset{})
			require.NoError(t, err)
		}
		tr.wait(tr.begins(messages.Execute{ID: "1", Owner: "b", Out: &fakeOutlet{}, Cells: []messages.Cell{{Code: "count"}}}))
	})
	require.Len(t, keeper.sleeps, 1)
	require.Equal(t, []string{"a", "b"}, keeper.sleeps[0].Owners)
}
