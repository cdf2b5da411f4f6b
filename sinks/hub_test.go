package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
)

func TestOneCall(t *testing.T) {
	t.Parallel()
	metrics := &sinks.Metrics{}
	all := &probe{}
	h := start(t, sinks.HubOptions{Metrics: metrics, Sinks: []sinks.Attachment{
		{Name: "all", For: func(messages.Execute) sinks.Sink { return all }},
		{Name: "none", For: func(messages.Execute) sinks.Sink { return nil }},
	}})
	p := &probe{}
	c := h.open(t, "a", sinks.Lane{Sink: p, Name: "mine"})
	require.NoError(t, c.Emit(t.Context(), messages.Status{Status: messages.CellRunning}))
	require.NoError(t, c.Emit(t.Context(), out("one\n")))
	require.NoError(t, c.Emit(t.Context(), out("two\n").At(messages.Position{Seq: 99, Cell: 1})))
	require.Empty(t, cmp.Diff(messages.Output{Cells: []messages.CellOutput{{Index: 0, Text: "one\n"}, {Index: 1, Text: "two\n"}}}, c.Flush(t.Context())))
	require.Equal(t, []string{"2:one\n", "3:two\n"}, p.texts())
	require.Equal(t, p.texts(), all.texts())
	flushes, closes := p.counts()
	require.Equal(t, []int{1, 0}, []int{flushes, closes})

	require.NoError(t, c.Emit(t.Context(), out("three\n")))
	require.Equal(t, "one\nthree\n", c.Flush(t.Context()).Cells[0].Text, "a call can go on after a flush")
	require.Equal(t, []sinks.LaneReport{{Name: "result"}, {Name: "all"}, {Name: "mine"}}, c.Lanes())
	require.EqualValues(t, 1, metrics.Snapshot().Open)

	c.Close()
	c.Close()
	eventually(t, "the sinks are closed", func() bool {
		_, mine := p.counts()
		_, shared := all.counts()
		return mine == 1 && shared == 1 && h.Singles() == 0
	})
	require.Equal(t, "the result sink failed: the sinks are closed", c.Flush(t.Context()).Lost)
	require.NoError(t, c.Emit(t.Context(), out("late\n")), "a closed call holds nobody back")
	require.Equal(t, []sinks.LaneReport{{Name: "result", Lost: 1}, {Name: "all", Lost: 1}, {Name: "mine", Lost: 1}}, c.Lanes())
	p.ok(t)
	all.ok(t)
	s := metrics.Snapshot()
	require.Equal(t, []uint64{1, 0, 4, 1, 0}, []uint64{s.Calls, s.Open, s.Events["stdout"], s.Events["status"], s.Dropped})
}

func TestTreeShowsTheSinks(t *testing.T) {
	t.Parallel()
	h := start(t, sinks.HubOptions{Name: "s", Shards: 2, Sinks: []sinks.Attachment{{Name: "journal", For: func(messages.Execute) sinks.Sink { return nil }}}})
	c := h.open(t, "a", sinks.Lane{Sink: &probe{}, Name: "console"})
	c.Flush(t.Context())
	names := func() []string {
		node, err := h.system.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, "sinks", node.Children[0].Kind)
		var names []string
		for _, n := range node.Children[0].Children {
			names = append(names, n.Kind+" "+n.Name)
		}
		return names
	}
	require.Equal(t, []string{"result result-0", "result result-1", "sink journal", "sink console#1"}, names())
	c.Close()
	eventually(t, "the call's own sink leaves the tree", func() bool { return len(names()) == 3 })
}

func TestHubOptions(t *testing.T) {
	t.Parallel()
	none := func(messages.Execute) sinks.Sink { return nil }
	for name, a := range map[string][]sinks.Attachment{
		"no name": {{For: none}}, "no function": {{Name: "x"}}, "two of a name": {{Name: "x", For: none}, {Name: "x", For: none}}, "a name of ours": {{Name: "result-0", For: none}},
	} {
		_, err := sinks.NewHub(sinks.HubOptions{Sinks: a})
		require.Error(t, err, name)
	}
	hub, err := sinks.NewHub(sinks.HubOptions{})
	require.NoError(t, err)
	_, err = hub.Open(t.Context(), exec("a"))
	require.ErrorIs(t, err, sinks.ErrClosed, "not part of a tree yet")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("cause")
	cancel(cause)
	_, err = hub.Open(ctx, exec("a"))
	require.ErrorIs(t, err, cause)
}

// gate is a sink that takes an event only when it is told to.
func gate() (*probe, chan struct{}) {
	open := make(chan struct{})
	return &probe{consume: func(ctx context.Context, _ int, _ messages.Event) error {
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}, open
}

func TestEmitWaitsForCredit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		slow, open := gate()
		c := h.open(t, "a", sinks.Lane{Sink: slow, Credit: 300})
		emitted := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 10 {
				if c.Emit(t.Context(), out(fmt.Sprintf("%036d", i))) != nil { // 100 bytes
					return
				}
				emitted++
			}
		}()
		synctest.Wait()
		require.Equal(t, 3, emitted, "what is on its way is bounded by the credit")
		require.EqualValues(t, 300, c.InUse(1))
		open <- struct{}{}
		synctest.Wait()
		require.Equal(t, 4, emitted)
		close(open)
		<-done
		c.Flush(t.Context())
		require.Len(t, slow.texts(), 10)
		require.EqualValues(t, 0, c.InUse(0))
		require.EqualValues(t, 0, c.InUse(1))
		slow.ok(t)
	})
}

func TestEmitGivesUpWithTheCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		first := &probe{}
		slow, open := gate()
		c := h.open(t, "a", first, sinks.Lane{Sink: slow, Credit: 1})
		require.NoError(t, c.Emit(t.Context(), out("1")), "an event larger than the credit is not refused")
		cause := errors.New("the caller left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
		defer cancel()
		require.ErrorIs(t, c.Emit(ctx, out("given up")), cause)
		require.EqualValues(t, 0, c.InUse(1), "what was taken for the others was given back")
		close(open)
		require.NoError(t, c.Emit(t.Context(), out("2")))
		require.Equal(t, "12", c.Flush(t.Context()).Cells[0].Text)
		require.Equal(t, []string{"1:1", "2:2"}, first.texts(), "the numbers have no gap, and no sink saw what was given up")
		require.Equal(t, []string{"1:1", "2:2"}, slow.texts())
	})
}

func TestLossyLaneDropsAndCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		slow, open := gate()
		c := h.open(t, "a", sinks.Lane{Sink: slow, Credit: 250, Lossy: true})
		for i := range 10 {
			require.NoError(t, c.Emit(t.Context(), out(fmt.Sprintf("%036d", i))))
		}
		begin := time.Now()
		require.Len(t, c.Flush(t.Context()).Cells[0].Text, 360, "the result has everything")
		require.Equal(t, 250*time.Millisecond, time.Since(begin), "a lossy sink does not hold the end of the call back for long")
		require.EqualValues(t, 8, c.Lanes()[1].Dropped)
		close(open)
		c.Flush(t.Context())
		require.Len(t, slow.texts(), 2)
	})
}

func TestFlushGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		slow, open := gate()
		c := h.open(t, "a", slow)
		require.NoError(t, c.Emit(t.Context(), out("x")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o := c.Flush(ctx)
		require.Equal(t, "x", o.Cells[0].Text, "another sink that is late does not cost the result")
		require.Empty(t, o.Lost)
		close(open)
		c.Flush(t.Context())
		require.Equal(t, []string{"1:x"}, slow.texts(), "it was still on its way")

		stuck, free := gate()
		r := h.open(t, "b")
		r.Sabotage(stuck)
		require.NoError(t, r.Emit(t.Context(), out("x")))
		ctx, cancel = context.WithTimeoutCause(t.Context(), time.Second, errors.New("no time left"))
		defer cancel()
		require.Equal(t, "the result sink did not finish: no time left", r.Flush(ctx).Lost)
		close(free)
	})
}

// TestDeadSinkHoldsNobodyBack: a sink without another one to take its place
// fails while the call waits for its credit.
func TestDeadSinkHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk full")
	for name, failure := range map[string]error{"broken": broken, "gone": fmt.Errorf("%w: pipe", sinks.ErrConsumerGone), "panic": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := start(t, sinks.HubOptions{})
				_, open := gate()
				p := &probe{consume: func(context.Context, int, messages.Event) error {
					<-open
					if failure == nil {
						panic("sink panics")
					}
					return failure
				}}
				var told []error
				c := h.open(t, "a", sinks.Lane{Sink: p, Credit: 100, OnGone: func(err error) { told = append(told, err) }})
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					for range 5 {
						err = errors.Join(err, c.Emit(t.Context(), out("x")))
					}
				}()
				synctest.Wait()
				close(open)
				<-done
				require.NoError(t, err)
				require.Equal(t, "xxxxx", c.Flush(t.Context()).Cells[0].Text)
				synctest.Wait()
				r := c.Lanes()[1]
				require.Error(t, r.Err)
				if failure != nil {
					require.ErrorIs(t, r.Err, failure)
				}
				require.GreaterOrEqual(t, r.Lost, uint64(1))
				require.Equal(t, []error{r.Err}, told)
				require.EqualValues(t, 0, c.InUse(1))
				c.Close()
				synctest.Wait()
				require.Zero(t, h.Singles(), "its actor has ended")
				_, closes := p.counts()
				require.Equal(t, failure != nil, closes == 1, "a sink that panicked is not touched again")
			})
		})
	}
}

// TestSinkIsReplacedOnce: what follows the failure goes to the next sink, in
// order; its failure ends the lane.
func TestSinkIsReplacedOnce(t *testing.T) {
	t.Parallel()
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprintf("panics=%v", panics), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := start(t, sinks.HubOptions{})
				var events []messages.Lifecycle
				stop := h.system.Watch(func(e messages.Lifecycle) { events = append(events, e) })
				failAt := func(n int) *probe {
					return &probe{consume: func(_ context.Context, i int, _ messages.Event) error {
						switch {
						case i != n:
							return nil
						case panics:
							panic("sink panics")
						default:
							return errors.New("sink fails")
						}
					}}
				}
				first, second := failAt(2), failAt(3)
				made := 0
				c := h.open(t, "a", sinks.Lane{Sink: first, Name: "own", Again: func() sinks.Sink { made++; return second }})
				for i := range 6 {
					require.NoError(t, c.Emit(t.Context(), out(fmt.Sprint(i))))
				}
				require.Equal(t, "012345", c.Flush(t.Context()).Cells[0].Text)
				require.Equal(t, []string{"1:0", "2:1"}, first.texts())
				require.Equal(t, []string{"4:3", "5:4", "6:5"}, second.texts())
				require.Equal(t, sinks.LaneReport{Name: "own", Lost: 1}, c.Lanes()[1])

				require.NoError(t, c.Emit(t.Context(), out("end")))
				c.Flush(t.Context())
				require.Error(t, c.Lanes()[1].Err)
				require.EqualValues(t, 2, c.Lanes()[1].Lost)
				require.Equal(t, 1, made)
				c.Close()
				synctest.Wait()
				stop()
				suspended := 0
				for _, e := range events {
					if s, ok := e.(messages.ChildChanged); ok && s.To == messages.ChildSuspended {
						require.Equal(t, "sinks/own#1", s.Path)
						suspended++
					}
				}
				require.GreaterOrEqual(t, suspended, 1, "the tree tells of the failure")
				first.ok(t)
				second.ok(t)
			})
		})
	}
}

// TestResultSinkSurvivesAPanic: what it had gathered stays, the output says that
// something is missing, and other calls do not notice.
func TestResultSinkSurvivesAPanic(t *testing.T) {
	t.Parallel()
	h := start(t, sinks.HubOptions{Shards: 1})
	for round := range 5 { // more often than a strategy would allow one actor
		other := h.open(t, "other")
		require.NoError(t, other.Emit(t.Context(), out("before ")))
		c := h.open(t, "a")
		c.Sabotage(&probe{consume: func(context.Context, int, messages.Event) error { panic("a bug") }})
		require.NoError(t, c.Emit(t.Context(), out("lost ")))
		require.NoError(t, c.Emit(t.Context(), out("kept")))
		require.NoError(t, other.Emit(t.Context(), out("after")))
		o := c.Flush(t.Context())
		require.Equal(t, "the result sink failed on 1 of the events, and went on", o.Lost, "round %d", round)
		require.Equal(t, "kept", o.Cells[0].Text)
		o = other.Flush(t.Context())
		require.Empty(t, o.Lost)
		require.Equal(t, "before after", o.Cells[0].Text)
		other.Close()
		c.Close()
	}
}

// TestSharedSinkFailsForOneCall: an error of one call's sink is not the actor's;
// a panic restarts the actor, and the other calls go on.
func TestSharedSinkFailsForOneCall(t *testing.T) {
	t.Parallel()
	good := &probe{}
	h := start(t, sinks.HubOptions{Sinks: []sinks.Attachment{{Name: "shared", Credit: 1000, For: func(e messages.Execute) sinks.Sink {
		switch e.Key.Session {
		case "fails":
			return &probe{consume: func(context.Context, int, messages.Event) error { return errors.New("no") }}
		case "panics":
			return &probe{consume: func(context.Context, int, messages.Event) error { panic("no") }}
		default:
			return good
		}
	}}}})
	c := h.open(t, "good")
	for range 4 {
		for _, session := range []string{"fails", "panics"} {
			bad := h.open(t, session)
			for range 30 {
				require.NoError(t, bad.Emit(t.Context(), out("x")))
			}
			require.Empty(t, bad.Flush(t.Context()).Lost)
			require.Error(t, bad.Lanes()[1].Err)
			bad.Close()
		}
		require.NoError(t, c.Emit(t.Context(), out("y")))
	}
	c.Flush(t.Context())
	require.Equal(t, []string{"1:y", "2:y", "3:y", "4:y"}, good.texts())
	require.EqualValues(t, 0, c.InUse(1), "the dead lanes gave their part of the credit back")
	good.ok(t)
}

func TestFlushThatFails(t *testing.T) {
	t.Parallel()
	h := start(t, sinks.HubOptions{})
	bad := func() *probe { return &probe{flush: func() error { return errors.New("cannot flush") }} }
	second := &probe{}
	c := h.open(t, "a", sinks.Lane{Sink: bad(), Name: "one"}, sinks.Lane{Sink: bad(), Name: "two", Again: func() sinks.Sink { return second }})
	require.Empty(t, c.Flush(t.Context()).Lost)
	require.EqualError(t, c.Lanes()[1].Err, "cannot flush")
	require.NoError(t, c.Lanes()[2].Err)
	flushes, _ := second.counts()
	require.Equal(t, 1, flushes)
}

// TestCloseWithoutUse: a call that never reached a kernel leaves nothing behind.
func TestCloseWithoutUse(t *testing.T) {
	t.Parallel()
	h := start(t, sinks.HubOptions{})
	p := &probe{}
	c := h.open(t, "a", p)
	c.Close()
	eventually(t, "closed", func() bool { _, closes := p.counts(); return closes == 1 && h.Singles() == 0 })
	p.ok(t)
}

// TestShutdownEndsOpenCalls: sinks of calls that nobody closed are flushed and
// closed, and Emit does not hang afterwards.
func TestShutdownEndsOpenCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared, own := &probe{}, &probe{}
		h := start(t, sinks.HubOptions{Sinks: []sinks.Attachment{{Name: "all", For: func(messages.Execute) sinks.Sink { return shared }}}})
		c := h.open(t, "a", sinks.Lane{Sink: own, Credit: 100})
		c.Flush(t.Context()) // a tree that drains starts no new actors
		require.NoError(t, c.Emit(t.Context(), out("x")))
		require.True(t, h.system.Shutdown(t.Context()).Clean())
		for _, p := range []*probe{shared, own} {
			require.Equal(t, []string{"1:x"}, p.texts())
			flushes, closes := p.counts()
			require.Equal(t, []int{2, 1}, []int{flushes, closes})
			p.ok(t)
		}
		for range 10 {
			require.NoError(t, c.Emit(t.Context(), out("y")))
		}
		require.NotEmpty(t, c.Flush(t.Context()).Lost)
		_, err := h.Open(t.Context(), exec("b"))
		require.ErrorIs(t, err, sinks.ErrClosed)
		c.Close()
		require.Zero(t, h.Singles())
	})
}

// talker is a child that ends after the sinks were told to drain, and emits
// while it does.
type talker struct {
	call *sinks.Call
	out  chan messages.Output
}

func (talker) Init(*supervisor.Ctx) error        { return nil }
func (talker) Handle(*supervisor.Ctx, any) error { return nil }
func (k talker) Terminate(*supervisor.Ctx, supervisor.Exit) {
	_ = k.call.Emit(context.Background(), out("last words"))
	k.out <- k.call.Flush(context.Background())
	k.call.Close()
}

func TestCallsThatEndInTheShutdownKeepTheirOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &talker{out: make(chan messages.Output, 1)}
		h := start(t, sinks.HubOptions{}, supervisor.Spec{Key: "gateway", New: func() supervisor.Behaviour { return k }})
		p := &probe{}
		k.call = h.open(t, "a", p)
		require.NoError(t, k.call.Emit(t.Context(), out("first words, ")))
		k.call.Flush(t.Context())
		require.True(t, h.system.Shutdown(t.Context()).Clean())
		o := <-k.out
		require.Equal(t, "first words, last words", o.Cells[0].Text)
		require.Empty(t, o.Lost)
		require.Equal(t, []string{"1:first words, ", "2:last words"}, p.texts())
	})
}

// TestManyCalls: many sessions at once, with slow, lossy and failing sinks
// beside the results, lose and mix nothing.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	live := sinks.NewLive(0, 0)
	metrics := &sinks.Metrics{}
	h := start(t, sinks.HubOptions{Metrics: metrics, Credit: 2000, Sinks: []sinks.Attachment{live.Attachment()}})
	const sessions, calls, lines = 24, 5, 60
	var wg sync.WaitGroup
	for s := range sessions {
		wg.Go(func() {
			for n := range calls {
				p := &probe{}
				fails := &probe{consume: func(_ context.Context, i int, _ messages.Event) error {
					if i == 7 {
						return errors.New("the seventh")
					}
					return nil
				}}
				session := fmt.Sprintf("session %d", s)
				c, err := h.Open(t.Context(), exec(session), sinks.Lane{Sink: p, Credit: 500}, fails)
				if err != nil {
					t.Error(err)
					return
				}
				var want strings.Builder
				for i := range lines {
					line := fmt.Sprintf("%s, call %d, line %d\n", session, n, i)
					want.WriteString(line)
					if err := c.Emit(t.Context(), out(line)); err != nil {
						t.Error(err)
					}
				}
				o := c.Flush(t.Context())
				if o.Lost != "" || o.Cells[0].Text != want.String() {
					t.Errorf("%s: %q, lost %q", session, o.Cells[0].Text, o.Lost)
				}
				if got := p.texts(); len(got) != lines || got[lines-1] != fmt.Sprintf("%d:%s, call %d, line %d\n", lines, session, n, lines-1) {
					t.Errorf("%s: %d events", session, len(got))
				}
				p.ok(t)
				c.Close()
			}
		})
	}
	wg.Wait()
	eventually(t, "every actor of a single call has ended", func() bool { return h.Singles() == 0 })
	require.EqualValues(t, sessions*calls*lines, metrics.Snapshot().Events["stdout"])
}
