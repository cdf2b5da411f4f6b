package sinks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

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
				c := h.open(t, "a", sinks.Subscription{Sink: p, Credit: 100, OnGone: func(err error) { told = append(told, err) }})
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
				r := c.Reports()[1]
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
// order; its failure ends the subscription.
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
				c := h.open(t, "a", sinks.Subscription{Sink: first, Name: "own", Again: func() sinks.Sink { made++; return second }})
				for i := range 6 {
					require.NoError(t, c.Emit(t.Context(), out(fmt.Sprint(i))))
				}
				require.Equal(t, "012345", c.Flush(t.Context()).Cells[0].Text)
				require.Equal(t, []string{"1:0", "2:1"}, first.texts())
				require.Equal(t, []string{"4:3", "5:4", "6:5"}, second.texts())
				require.Equal(t, sinks.SinkReport{Name: "own", Lost: 1}, c.Reports()[1])

				require.NoError(t, c.Emit(t.Context(), out("end")))
				c.Flush(t.Context())
				require.Error(t, c.Reports()[1].Err)
				require.EqualValues(t, 2, c.Reports()[1].Lost)
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
	h := start(t, sinks.HubOptions{Sinks: []sinks.Attachment{{Name: "shared", Credit: 1000, For: func(_ context.Context, e messages.Execute) sinks.Sink {
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
			require.Error(t, bad.Reports()[1].Err)
			bad.Close()
		}
		require.NoError(t, c.Emit(t.Context(), out("y")))
	}
	c.Flush(t.Context())
	require.Equal(t, []string{"1:y", "2:y", "3:y", "4:y"}, good.texts())
	require.EqualValues(t, 0, c.InUse(1), "the dead subscriptions gave their part of the credit back")
	good.ok(t)
}

func TestFlushThatFails(t *testing.T) {
	t.Parallel()
	h := start(t, sinks.HubOptions{})
	bad := func() *probe { return &probe{flush: func() error { return errors.New("cannot flush") }} }
	second := &probe{}
	c := h.open(t, "a", sinks.Subscription{Sink: bad(), Name: "one"}, sinks.Subscription{Sink: bad(), Name: "two", Again: func() sinks.Sink { return second }})
	require.Empty(t, c.Flush(t.Context()).Lost)
	require.EqualError(t, c.Reports()[1].Err, "cannot flush")
	require.NoError(t, c.Reports()[2].Err)
	flushes, _ := second.counts()
	require.Equal(t, 1, flushes)
}

// TestTheHostHearsOfASinkThatFails: its calls do not fail with it, so that nothing else
// would tell. A consumer that has left is no failure.
func TestTheHostHearsOfASinkThatFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk full")
	for name, tc := range map[string]struct {
		sink *probe
		want string
	}{
		"an event": {&probe{consume: func(context.Context, int, messages.Event) error { return broken }}, "disk full"},
		"a flush":  {&probe{flush: func() error { return broken }}, "disk full"},
		"a panic":  {&probe{consume: func(context.Context, int, messages.Event) error { panic("no") }}, "the sink panicked"},
		"gone":     {&probe{consume: func(context.Context, int, messages.Event) error { return sinks.ErrConsumerGone }}, ""},
		"none":     {&probe{}, ""},
	} {
		var log bytes.Buffer
		hub := start(t, sinks.HubOptions{Logger: slog.New(slog.NewTextHandler(&log, nil)), Sinks: []sinks.Attachment{
			{Name: "journal", For: func(context.Context, messages.Execute) sinks.Sink { return tc.sink }},
		}})
		c := hub.open(t, "a")
		require.NoError(t, c.Emit(t.Context(), out("x")), name)
		require.Equal(t, "x", c.Flush(t.Context()).Cells[0].Text, name)
		c.Close()
		hub.system.Shutdown(context.Background()) // nothing is logged any more
		if tc.want == "" {
			require.Empty(t, log.String(), name)
			continue
		}
		require.Contains(t, log.String(), "sink=journal exec=id-of-a", name)
		require.Contains(t, log.String(), tc.want, name)
		require.Equal(t, 1, strings.Count(log.String(), "\n"), name)
	}
}
