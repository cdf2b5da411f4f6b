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

// After Hurry, a slow sink costs nobody time: it goes without output, and is told.
func TestHurry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		fast := &probe{}
		slow, open := gate()
		ch := sinks.NewChannel(200)
		c := h.open(t, "a", fast, sinks.Lane{Sink: slow, Credit: 200}, ch)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 10 {
				_ = c.Emit(t.Context(), out(fmt.Sprintf("%036d", i))) // 100 bytes
			}
			_ = c.Emit(t.Context(), messages.Status{Status: messages.CellComplete})
		}()
		synctest.Wait()
		require.Len(t, fast.texts(), 2, "the slow ones hold the call back")
		begin := time.Now()
		c.Hurry()
		<-done
		require.Len(t, c.Flush(t.Context()).Cells[0].Text, 360, "the result has everything")
		require.LessOrEqual(t, time.Since(begin), 500*time.Millisecond)
		require.Len(t, fast.texts(), 10)
		require.EqualValues(t, 0, c.Lanes()[1].Dropped)
		require.EqualValues(t, 8, c.Lanes()[2].Dropped)
		require.EqualValues(t, 8, c.Lanes()[3].Dropped)
		close(open)
		c.Flush(t.Context())
		c.Close()
		var pulled []messages.Event
		for e := range ch.Events() {
			pulled = append(pulled, e)
		}
		for _, events := range [][]messages.Event{slow.events, pulled} {
			require.Len(t, events, 4)
			require.Equal(t, sinks.NoticeSkipped, events[2].(messages.Notice).Code)
			require.Equal(t, messages.CellComplete, events[3].(messages.Status).Status, "how it ended is told all the same")
		}
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

		never, free := gate()
		c = h.open(t, "c", never)
		require.NoError(t, c.Emit(t.Context(), out("x")))
		begin := time.Now()
		require.Equal(t, "x", c.Flush(t.Context()).Cells[0].Text)
		require.Equal(t, 10*time.Second, time.Since(begin), "nobody else holds the result back for long")
		close(free)

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

// TestShutdownWaitsForASlowSink: a sink that is in the middle of something gets
// a last chance.
func TestShutdownWaitsForASlowSink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, sinks.HubOptions{})
		slow, gone := &probe{}, &probe{}
		wait := func(d time.Duration) func(context.Context, int, messages.Event) error {
			return func(ctx context.Context, _ int, _ messages.Event) error {
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		slow.consume, gone.consume = wait(900*time.Millisecond), wait(time.Hour)
		c := h.open(t, "a", slow, gone)
		for range 3 {
			require.NoError(t, c.Emit(t.Context(), out("x")))
		}
		synctest.Wait()
		begin := time.Now()
		require.True(t, h.system.Shutdown(t.Context()).Clean())
		require.Equal(t, []string{"1:x", "2:x", "3:x"}, slow.texts())
		require.Empty(t, gone.texts())
		require.Less(t, time.Since(begin), 5*time.Second)
		require.EqualValues(t, 3, c.Lanes()[2].Lost)
		slow.ok(t)
		gone.ok(t)
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
	all := sinks.Attachment{Name: "all", For: func(messages.Execute) sinks.Sink { return &probe{} }, Lossy: true}
	metrics := &sinks.Metrics{}
	h := start(t, sinks.HubOptions{Metrics: metrics, Credit: 2000, Sinks: []sinks.Attachment{all}})
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
