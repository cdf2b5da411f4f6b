package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

func TestOneCall(t *testing.T) {
	t.Parallel()
	metrics := &sinks.Metrics{}
	all := &probe{}
	h := start(t, sinks.HubOptions{Metrics: metrics, Sinks: []sinks.Attachment{
		{Name: "all", For: func(context.Context, messages.Execute) sinks.Sink { return all }},
		{Name: "none", For: func(context.Context, messages.Execute) sinks.Sink { return nil }},
	}})
	p := &probe{}
	c := h.open(t, "a", sinks.Subscription{Sink: p, Name: "mine"})
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
	require.Equal(t, []sinks.SinkReport{{Name: "result"}, {Name: "all"}, {Name: "mine"}}, c.Reports())
	require.EqualValues(t, 1, metrics.Snapshot().Open)

	c.Close()
	c.Close()
	eventually(t, "the sinks are closed", func() bool {
		_, mine := p.counts()
		_, shared := all.counts()
		return mine == 1 && shared == 1 && h.Singles() == 0
	})
	require.Equal(t, "the result sink failed: the sinks are closed", c.Flush(t.Context()).Lost)
	require.NoError(t, c.Emit(t.Context(), out("late\n")), "a closed call holds nothing back")
	require.Equal(t, []sinks.SinkReport{{Name: "result", Lost: 1}, {Name: "all", Lost: 1}, {Name: "mine", Lost: 1}}, c.Reports())
	p.ok(t)
	all.ok(t)
	s := metrics.Snapshot()
	require.Equal(t, []uint64{1, 0, 4, 1, 0}, []uint64{s.Calls, s.Open, s.Events["stdout"], s.Events["status"], s.Dropped})
}

// TestWhatCounts: calls, results and final events add up, and what only gets a session its kernel
// is none of them.
func TestWhatCounts(t *testing.T) {
	t.Parallel()
	metrics := &sinks.Metrics{}
	h := start(t, sinks.HubOptions{Metrics: metrics})
	for _, cells := range [][]messages.Cell{{{Code: "1"}}, {}, {{Code: "1"}}} {
		c, err := h.Open(t.Context(), messages.Execute{ID: "a", Cells: cells})
		require.NoError(t, err)
		require.NoError(t, c.Finish(t.Context(), messages.Result{Outcome: messages.OutcomeOK, State: messages.StateKept}))
		c.Close()
	}
	s := metrics.Snapshot()
	require.Equal(t, []uint64{2, 0, 2}, []uint64{s.Calls, s.Open, s.Events["final"]})
	require.Equal(t, []sinks.ResultCount{{Outcome: messages.OutcomeOK, State: messages.StateKept, Count: 2}}, s.Results)
}

func TestTreeShowsTheSinks(t *testing.T) {
	t.Parallel()
	h := start(t, sinks.HubOptions{Name: "s", Shards: 2, Sinks: []sinks.Attachment{{Name: "journal", For: func(context.Context, messages.Execute) sinks.Sink { return nil }}}})
	c := h.open(t, "a", sinks.Subscription{Sink: &probe{}, Name: "console"})
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
	none := func(context.Context, messages.Execute) sinks.Sink { return nil }
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

// TestManyCalls: many sessions at once, with slow, lossy and failing sinks
// beside the results, lose and mix nothing.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	all := sinks.Attachment{Name: "all", For: func(context.Context, messages.Execute) sinks.Sink { return &probe{} }, Lossy: true}
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
				c, err := h.Open(t.Context(), exec(session), sinks.Subscription{Sink: p, Credit: 500}, fails)
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
