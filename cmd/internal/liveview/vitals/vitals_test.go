package vitals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

var key = messages.SessionKey{Session: "a", Cwd: "/w"}

// source is a server that shows what it is given.
type source struct {
	mu       sync.Mutex
	sessions []client.Session // guarded by mu
	tree     messages.Node    // not changed
	err      error            // guarded by mu
	asked    int              // guarded by mu
}

// change changes what is shown next.
func (s *source) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *source) all() Source {
	return Source{
		Sessions: func(context.Context) ([]client.Session, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asked++
			return slices.Clone(s.sessions), s.err
		},
		Tree: func(context.Context) (messages.Node, error) { return s.tree, nil },
	}
}

// state is a change of the session a.
func state(epoch uint64, from, to messages.ChildState, exit *messages.Exit) messages.ChildChanged {
	return messages.ChildChanged{At: time.Now(), Key: key.ID(), Kind: "kernel", Epoch: epoch, From: from, To: to, Exit: exit, PID: 7}
}

// call has a call with events and this outcome.
func (v *Vitals) call(t *testing.T, id string, outcome messages.Outcome, took time.Duration, events ...messages.Event) {
	t.Helper()
	s := v.Attachment().For(t.Context(), messages.Execute{ID: id, Key: key, Cells: []messages.Cell{{}}})
	for _, e := range append(events, messages.Final{Result: messages.Result{Outcome: outcome, Duration: took, Reason: "the kernel died"}}) {
		require.NoError(t, s.Consume(t.Context(), e))
	}
	require.NoError(t, s.Flush(t.Context()))
	require.NoError(t, s.Close())
}

func words(s client.Story) string {
	var list []string
	for _, m := range s.Moments {
		list = append(list, m.What)
	}
	return strings.Join(list, " ")
}

func overview(t *testing.T, v *Vitals, after uint64) client.Overview {
	t.Helper()
	o, err := v.Overview(t.Context(), after)
	require.NoError(t, err)
	return o
}

// A step has what was counted in it; an hour of them is kept.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{
			sessions: []client.Session{{Session: "a", Cwd: "/w", State: messages.ChildBusy, Queue: 2, RSS: 100, PID: 7, CPU: 1}, {Session: "b", State: messages.ChildIdle, RSS: 50}},
			tree:     messages.Node{Busy: &messages.Busy{Pressure: .25}},
		}
		v := New()
		v.Show(s.all())
		defer v.Close()
		for i := range 100 {
			v.call(t, fmt.Sprint(i), messages.OutcomeOK, time.Duration(i+1)*time.Millisecond)
		}
		v.call(t, "x", messages.OutcomeError, time.Second)
		v.Hear(state(1, "", messages.ChildStarting, nil))
		v.Hear(state(1, messages.ChildStarting, messages.ChildIdle, nil))
		time.Sleep(step + time.Second)
		s.change(func() { s.sessions[0].CPU += 5 })
		time.Sleep(step)
		o := overview(t, v, 0)
		require.Len(t, o.Samples, 2)
		first, second := o.Samples[0], o.Samples[1]
		require.Equal(t, map[messages.Outcome]int{messages.OutcomeOK: 100, messages.OutcomeError: 1}, first.Calls)
		require.InDelta(t, 51, first.P50, 0)
		require.InDelta(t, 100, first.P99, 0)
		require.Equal(t, 1, first.Starts)
		require.Equal(t, map[messages.ChildState]int{messages.ChildBusy: 1, messages.ChildIdle: 1}, first.Sessions)
		require.Equal(t, []int64{2, 150}, []int64{int64(first.Queue), first.RSS})
		require.InDelta(t, .25, first.Pressure, 0)
		require.Zero(t, first.CPU, "there was no reading before it")
		require.InDelta(t, 50, second.CPU, 0)
		require.Empty(t, second.Calls)
		require.Zero(t, second.P99)

		time.Sleep(2 * time.Hour)
		o = overview(t, v, 0)
		require.Len(t, o.Samples, keptSamples)
		require.Equal(t, o.Newest, o.Samples[keptSamples-1].Seq)
		require.Len(t, overview(t, v, o.Newest-3).Samples, 3)
		require.Empty(t, overview(t, v, o.Newest).Samples)
	})
}

// A look that fails leaves the sample with what was counted, and the overview says why.
func TestALookThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := errors.New("the host has ended")
		s := &source{err: ended}
		v := New()
		v.Show(s.all())
		defer v.Close()
		v.call(t, "x", messages.OutcomeOK, time.Second)
		time.Sleep(step + time.Second)
		_, err := v.Overview(t.Context(), 0)
		require.ErrorIs(t, err, ended)
		s.change(func() { s.err = nil })
		o := overview(t, v, 0)
		require.Equal(t, 1, o.Samples[0].Calls[messages.OutcomeOK])
		var first, second int
		s.change(func() { first = s.asked })
		overview(t, v, 0)
		s.change(func() { second = s.asked })
		require.Equal(t, first, second, "a fresh look is shown again")
	})
}

// Whoever comes while a look fails does not wait for one of its own after it.
func TestALookThatFailsIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, looks := New(), 0
		v.source = Source{Sessions: func(ctx context.Context) ([]client.Session, error) {
			looks++
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}}
		began := time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, err := v.Overview(t.Context(), 0)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		all.Wait()
		require.Equal(t, patience, time.Since(began))
		require.Equal(t, 1, looks)

		gone, leave := context.WithCancel(t.Context())
		all.Go(func() {
			_, err := v.Overview(gone, 0)
			require.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		all.Go(func() {
			_, err := v.Overview(t.Context(), 0)
			require.ErrorIs(t, err, context.DeadlineExceeded, "that another one has gone is no answer")
		})
		synctest.Wait()
		leave()
		all.Wait()
		require.Equal(t, 3, looks)
	})
}

func TestTheStoryOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New()
		v.Hear(state(1, "", messages.ChildStarting, nil))
		time.Sleep(30 * time.Millisecond)
		v.Hear(state(1, messages.ChildStarting, messages.ChildIdle, nil))
		killed := &messages.Exit{Kind: messages.ExitFailed, Reason: "it was killed"}
		v.Hear(state(1, messages.ChildBusy, messages.ChildSuspended, killed))
		v.Hear(state(1, messages.ChildSuspended, messages.ChildRestarting, killed))
		v.call(t, "x", messages.OutcomeLost, time.Second)
		v.Hear(state(2, messages.ChildRestarting, messages.ChildStarting, nil))
		v.Hear(state(2, messages.ChildStarting, messages.ChildIdle, nil))
		v.Hear(state(2, messages.ChildIdle, messages.ChildStopping, &messages.Exit{Kind: messages.ExitEvicted, Reason: "idle for 1h"}))
		v.Hear(state(2, messages.ChildStopping, messages.ChildGone, &messages.Exit{Kind: messages.ExitEvicted, Reason: "idle for 1h"}))
		story := v.Story(key)
		require.Equal(t, "started died lost restarted evicted", words(story), "an exit that is heard of twice is told once")
		require.Equal(t, "in 30ms", story.Moments[0].Why)
		require.Equal(t, "it was killed", story.Moments[1].Why)
		require.Equal(t, 7, story.Moments[3].PID)
		require.Contains(t, story.Moments[3].Why, "with no variables")
		require.Equal(t, []int{1, 1, 1, 1}, []int{v.now.Starts, v.now.Restarts, v.now.Deaths, v.now.Evictions})

		for _, other := range []messages.ChildChanged{
			{Kind: "server", Key: "fork-server", To: messages.ChildGone, Exit: killed},
			{Kind: "kernel", Key: key.CallID("x"), To: messages.ChildGone, Exit: killed},
		} {
			v.Hear(other)
		}
		v.Hear(messages.Dropped{})
		require.Len(t, v.stories, 1)
		require.Empty(t, v.Story(messages.SessionKey{Session: "none"}).Moments)
	})
}

// The reasons of ends have their words.
func TestEnds(t *testing.T) {
	for want, exit := range map[string]messages.Exit{
		"closed": {Kind: messages.ExitShutdown, Reason: messages.SessionClosed + " by its owner"}, "ended": {Kind: messages.ExitShutdown, Reason: "the host ends"},
		"reset": {Kind: messages.ExitReset}, "hung": {Kind: messages.ExitHung}, "refused": {Kind: messages.ExitExhausted}, "died": {Kind: messages.ExitPanicked},
	} {
		v := New()
		v.Hear(state(1, messages.ChildIdle, messages.ChildGone, &exit))
		require.Equal(t, want, words(v.Story(key)))
	}
}

// A copy is one because it was made as one, whatever the names are.
func TestACopyKnowsItsParent(t *testing.T) {
	v := New()
	v.Hear(state(1, messages.ChildStarting, messages.ChildIdle, nil))
	begins := func(name, of string, epoch uint64) messages.SessionKey {
		k := key
		k.Session = name
		c := state(epoch, messages.ChildStarting, messages.ChildIdle, nil)
		c.Key, c.CopyOf = k.ID(), of
		v.Hear(c)
		return k
	}
	copied := begins("of its own name", "a", 1)
	require.Equal(t, "copied", words(v.Story(copied)))
	require.Equal(t, "from a, with all that it had in memory", v.Story(copied).Moments[0].Why)
	require.Equal(t, "started forked", words(v.Story(key)))
	require.Equal(t, "to of its own name", v.Story(key).Moments[1].Why)
	backup := begins("a~backup", "", 1)
	require.Equal(t, "started", words(v.Story(backup)), "a name says nothing")
	require.Equal(t, "started forked", words(v.Story(key)))
	require.Equal(t, "copied", words(v.Story(begins("c", "unknown", 1))))
	v.Show((&source{sessions: []client.Session{{Session: copied.Session, Cwd: "/w", State: messages.ChildIdle}, {Session: "a~backup", Cwd: "/w", State: messages.ChildIdle}}}).all())
	defer v.Close()
	require.Equal(t, []client.Mark{{Key: copied, Parent: "a"}}, overview(t, v, 0).Marks)

	begins(copied.Session, copied.Session, 2)
	require.Equal(t, "copied restarted", words(v.Story(copied)))
	require.Equal(t, "as it was at a checkpoint", v.Story(copied).Moments[1].Why)
	begins(copied.Session, "", 1)
	require.Empty(t, overview(t, v, 0).Marks, "another session that has its name now is no copy")
}

// A session is shaky from its death to the next call that goes well, and a reset ends
// that, too.
func TestShakyUntilACallGoesWell(t *testing.T) {
	v := New()
	v.Show((&source{sessions: []client.Session{{Session: "a", Cwd: "/w", State: messages.ChildIdle}}}).all())
	defer v.Close()
	level := func() client.Level {
		if m := overview(t, v, 0).Marks; len(m) > 0 {
			return m[0].Level
		}
		return ""
	}
	die := func(epoch uint64) {
		v.Hear(state(epoch, messages.ChildBusy, messages.ChildSuspended, &messages.Exit{Kind: messages.ExitFailed}))
	}
	require.Empty(t, level())
	die(1)
	require.Equal(t, client.LevelShaky, level())
	v.call(t, "1", messages.OutcomeError, time.Second)
	require.Equal(t, client.LevelShaky, level(), "an error of the code is no good call")
	v.call(t, "2", messages.OutcomeOK, time.Second)
	require.Empty(t, level())
	die(2)
	v.Hear(state(2, messages.ChildSuspended, messages.ChildFailed, &messages.Exit{Kind: messages.ExitExhausted, Reason: "it failed too often"}))
	require.Equal(t, client.LevelBad, level())
	v.Hear(state(2, messages.ChildFailed, messages.ChildRestarting, &messages.Exit{Kind: messages.ExitReset}))
	require.Empty(t, level())
}

// A question marks its session until it is answered, in each of the ways that there are.
func TestQuestions(t *testing.T) {
	ask := messages.InputRequest{ID: "q", Prompt: strings.Repeat("x", 400), IdleTimeoutMS: 60_000}
	for name, answer := range map[string]func(*Vitals, *testing.T, func(messages.Event)){
		"the host says so":  func(v *Vitals, _ *testing.T, _ func(messages.Event)) { v.Answered("x") },
		"the code comes on": func(_ *Vitals, _ *testing.T, then func(messages.Event)) { then(messages.Stream{}) },
		"the call ends":     func(_ *Vitals, _ *testing.T, then func(messages.Event)) { then(messages.Final{}) },
		"the session is gone": func(v *Vitals, _ *testing.T, _ func(messages.Event)) {
			v.Hear(state(1, messages.ChildStopping, messages.ChildGone, nil))
		},
		"the time is over": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			v := New()
			v.Show((&source{sessions: []client.Session{{Session: "a", Cwd: "/w", State: messages.ChildBusy}}}).all())
			defer v.Close()
			sink := v.Attachment().For(Of(t.Context(), "x"), messages.Execute{ID: "its own", Key: key, Cells: []messages.Cell{{}}})
			then := func(e messages.Event) { require.NoError(t, sink.Consume(t.Context(), e)) }
			then(ask)
			then(messages.Notice{Text: "it waits"})
			o := overview(t, v, 0)
			require.Len(t, o.Marks, 1)
			m := o.Marks[0]
			require.Equal(t, client.LevelAsks, m.Level)
			require.Equal(t, []string{"x", "q"}, []string{m.Question.Execution, m.Question.ID})
			require.Len(t, []rune(m.Question.Prompt), keptText)
			require.Equal(t, time.Now().Add(time.Minute), m.Question.Until)
			require.Equal(t, "asks", o.Problems[0].Kind)
			require.Equal(t, m.Question.Until, o.Problems[0].Until)
			if answer == nil {
				time.Sleep(time.Minute)
			} else {
				answer(v, t, then)
			}
			require.Empty(t, overview(t, v, 0).Marks, name)
			require.Equal(t, "asked", words(v.Story(key)))
			require.NoError(t, sink.Close())
			require.Empty(t, v.calls)
			require.Empty(t, v.asking)
		})
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	v := New()
	for i := range keptStories + 500 {
		c := state(1, messages.ChildStarting, messages.ChildIdle, nil)
		c.Key = messages.SessionKey{Session: fmt.Sprint(i), Cwd: "/w"}.ID()
		v.Hear(c)
	}
	require.LessOrEqual(t, len(v.stories), keptStories)
	require.Contains(t, v.stories, messages.SessionKey{Session: fmt.Sprint(keptStories + 499), Cwd: "/w"}.ID())
	require.NotContains(t, v.stories, messages.SessionKey{Session: "0", Cwd: "/w"}.ID())
	for range keptMoments + 3 {
		v.tellLocked(key, client.Moment{What: "asked"})
	}
	s := v.Story(key)
	require.Len(t, s.Moments, keptMoments)
	require.Equal(t, 3, s.Forgotten)
	for range 3 * keptTimes {
		v.took(messages.OutcomeOK, time.Second)
	}
	require.Len(t, v.times, keptTimes)
	require.Equal(t, 3*keptTimes, v.now.Calls[messages.OutcomeOK])
}

// TestStoryOfASessionOnDisk: what became of the state is told with the end, also where that
// is known only after it has begun.
func TestStoryOfASessionOnDisk(t *testing.T) {
	v := New()
	v.Hear(state(1, messages.ChildStarting, messages.ChildIdle, nil))
	v.Hear(state(1, messages.ChildIdle, messages.ChildStopping, &messages.Exit{Kind: messages.ExitEvicted, Reason: "no room is left"}))
	v.Hear(state(1, messages.ChildStopping, messages.ChildGone, &messages.Exit{Kind: messages.ExitEvicted, Reason: "no room is left; its state is kept on disk"}))
	for range 2 {
		v.Hear(state(1, messages.ChildStarting, messages.ChildIdle, nil))
		v.Hear(state(1, messages.ChildIdle, messages.ChildStopping, &messages.Exit{Kind: messages.ExitHibernated}))
		v.Hear(state(1, messages.ChildStopping, messages.ChildGone, &messages.Exit{Kind: messages.ExitHibernated}))
	}
	s := v.Story(key)
	require.Equal(t, "started evicted started hibernated started hibernated", words(s))
	require.Equal(t, "no room is left; its state is kept on disk", s.Moments[1].Why)
	require.Equal(t, "its next call restores it from disk", s.Moments[3].Why)
}
