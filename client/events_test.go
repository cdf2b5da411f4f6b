package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// printed is an event of an execution, and final its last one.
func printed(n int) string {
	return fmt.Sprintf(`{"seq":%d,"cell":0,"type":"stdout","text":"%d"}`, n, n)
}

func final(n int) string { return fmt.Sprintf(`{"seq":%d,"cell":-1,"type":"final","outcome":"ok"}`, n) }

// numbers are those of the events, and the error at their end.
func numbers(events func(func(messages.Event, error) bool)) (list []uint64, err error) {
	for e, err := range events {
		if err != nil {
			return list, err
		}
		list = append(list, e.Pos().Seq)
	}
	return list, nil
}

// TestEventsOverConnectionsThatBreak come once and in order: each connection is asked
// for what follows the last event that was seen.
func TestEventsOverConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after uint64
		conns [][]string // the events of each connection; all but the last are cut
		want  []uint64
		asked []string // the cursor of each
	}{
		"whole":                   {0, [][]string{{printed(1), printed(2), final(3)}}, []uint64{1, 2, 3}, []string{""}},
		"cut twice":               {0, [][]string{{printed(1)}, {printed(2), printed(3)}, {final(4)}}, []uint64{1, 2, 3, 4}, []string{"", "1", "3"}},
		"cut before the first":    {0, [][]string{{}, {final(1)}}, []uint64{1}, []string{"", ""}},
		"what was seen before":    {0, [][]string{{printed(1), printed(2)}, {printed(1), printed(2), printed(3), final(4)}}, []uint64{1, 2, 3, 4}, []string{"", "2"}},
		"from a number on":        {7, [][]string{{printed(8)}, {final(9)}}, []uint64{8, 9}, []string{"7", "8"}},
		"nothing after the final": {0, [][]string{{final(1), printed(2)}}, []uint64{1}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var conns atomic.Int64
			s, c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
				n := int(conns.Add(1))
				streams(w, tc.conns[n-1]...)
				if n < len(tc.conns) {
					_, _ = io.WriteString(w, "data: {\"seq\"")
					cut(w)
				}
			})
			got, err := numbers(c.Events(ctx, "x1", tc.after))
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			var cursors []string
			for _, a := range s.seen() {
				require.Equal(t, "/api/executions/x1/events", a.path)
				cursors = append(cursors, a.last)
			}
			require.Equal(t, tc.asked, cursors)
		})
	}
}

// TestEventsThatMakeNoSense end with an error at once: a repetition would be the same.
func TestEventsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ event, want string }{
		"a gap":     {printed(3), "event 3 follows event 1"},
		"no JSON":   {"{", "the server's events make no sense"},
		"no type":   {`{"seq":2}`, "the server's events make no sense"},
		"no number": {`{"type":"final","outcome":"ok"}`, "patience"},
	} {
		var asked atomic.Int64
		_, c := serve(t, client.Options{Patience: -1}, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			streams(w, printed(1), tc.event)
		})
		got, err := numbers(c.Events(ctx, "x1", 0))
		require.Equal(t, []uint64{1}, got, name)
		if name != "no number" {
			require.ErrorContains(t, err, tc.want, name)
		}
		require.ErrorContains(t, err, "events of execution x1 after 1: ", name)
		require.EqualValues(t, 1, asked.Load(), name)
	}
	_, c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) { streams(w, "[]") })
	for _, err := range c.Changes(ctx, 0) {
		require.ErrorContains(t, err, "changes after 0: the server's events make no sense: read a change")
	}
}

// TestNothingFollows: who has seen the last event is told that there is no more.
func TestNothingFollows(t *testing.T) {
	t.Parallel()
	s, c := serve(t, client.Options{}, says(http.StatusNoContent, ""))
	got, err := numbers(c.Events(ctx, "x1", 4))
	require.NoError(t, err)
	require.Empty(t, got)
	require.Len(t, s.seen(), 1)
}

// TestChanges come in order, from where a connection broke.
func TestChanges(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	s, c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		if conns.Add(1) == 1 {
			streams(w, `{"seq":5,"at":"2026-01-02T03:04:05Z","type":"tree","tree":{"a":1}}`)
			cut(w)
		}
		streams(w, `{"seq":9,"type":"missed","missed":3}`, `{"seq":10,"type":"execution","execution":{"id":"x1","state":"running"}}`)
		cut(w)
	})
	var got []client.Change
	for change, err := range c.Changes(ctx, 0) {
		require.NoError(t, err)
		if got = append(got, change); len(got) == 3 {
			break
		}
	}
	require.Equal(t, []client.Change{
		{Seq: 5, At: began, Type: "tree", Tree: messages.RawJSON(`{"a":1}`)},
		{Seq: 9, Type: "missed", Missed: 3},
		{Seq: 10, Type: "execution", Execution: &client.Execution{ID: "x1", State: client.Running}},
	}, got)
	require.Equal(t, []asked{{method: "GET", path: "/api/changes"}, {method: "GET", path: "/api/changes", last: "5"}}, s.seen())
}

// slow is the body of an answer that gives its parts one after the other, a pause
// before each, and then nothing until it is closed.
type slow struct {
	ctx   context.Context
	pause time.Duration
	parts []string
}

// Read gives the next part.
func (s *slow) Read(p []byte) (int, error) {
	if len(s.parts) == 0 {
		<-s.ctx.Done()
		return 0, s.ctx.Err()
	}
	select {
	case <-time.After(s.pause):
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	n := copy(p, s.parts[0])
	s.parts = s.parts[1:]
	return n, nil
}

// Close ends it.
func (s *slow) Close() error { return nil }

// TestASilentServer: signs of life keep a stream; without any it is taken for broken and
// made again.
func TestASilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conns := 0
		c, err := client.New(client.Options{URL: "http://h", Transport: trips(func(r *http.Request) (*http.Response, error) {
			body := &slow{ctx: r.Context(), pause: 40 * time.Second, parts: []string{": alive\n\n", ": alive\n\n", "data: " + printed(1) + "\n\n"}}
			if conns++; conns > 1 {
				body.parts = []string{"data: " + final(2) + "\n\n"}
			}
			return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
		})})
		require.NoError(t, err)
		defer c.Close()
		from := time.Now()
		got, err := numbers(c.Events(t.Context(), "x1", 0))
		require.NoError(t, err)
		require.Equal(t, []uint64{1, 2}, got)
		require.Equal(t, 2, conns)
		// Three parts, the silence that ends the first connection, a short pause, one part.
		require.InDelta(t, (3*40 + 45 + 40), time.Since(from).Seconds(), 1)
	})
	synctest.Test(t, func(t *testing.T) {
		c, err := client.New(client.Options{URL: "http://h", Silence: 2 * time.Second, Patience: -1, Transport: trips(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done() // not even a head comes
			return nil, r.Context().Err()
		})})
		require.NoError(t, err)
		defer c.Close()
		from := time.Now()
		_, err = numbers(c.Events(t.Context(), "x1", 0))
		require.ErrorContains(t, err, "the server has been silent for too long")
		require.Equal(t, 2*time.Second, time.Since(from))
	})
}

// TestPatienceIsForProgress: a stream that goes on, however often it breaks, does not
// use patience up.
func TestPatienceIsForProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c, err := client.New(client.Options{URL: "http://h", Patience: 5 * time.Second, Transport: trips(func(r *http.Request) (*http.Response, error) {
			if n++; n > 20 {
				return nil, errors.New("gone")
			}
			return &http.Response{StatusCode: http.StatusOK, Body: &cutAfter{slow{ctx: r.Context(), pause: 3 * time.Second, parts: []string{"data: " + printed(n) + "\n\n"}}}}, nil
		})})
		require.NoError(t, err)
		defer c.Close()
		got, err := numbers(c.Events(t.Context(), "x1", 0))
		require.Len(t, got, 20)
		require.ErrorContains(t, err, "events of execution x1 after 20: gone")
	})
}

// TestAQuietStream: one that has nothing to say for longer than patience lasts, and then
// breaks, is made again, however often. It is the time out of reach that counts.
func TestAQuietStream(t *testing.T) {
	t.Parallel()
	quiet := slices.Repeat([]string{": alive\n\n"}, 40) // for ten minutes
	for name, tc := range map[string]struct {
		parts [][]string // of each connection
		want  string
	}{
		"that lives":       {[][]string{quiet, quiet, quiet, {"data: " + final(1) + "\n\n"}}, ""},
		"that never lives": {[][]string{quiet, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}, "the connection broke"},
		"that greets":      {append([][]string{quiet}, slices.Repeat([][]string{{": alive\n\n"}}, 19)...), "the connection broke"},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			c, err := client.New(client.Options{URL: "http://h", Patience: 9 * time.Second, Transport: trips(func(r *http.Request) (*http.Response, error) {
				body := &cutAfter{slow{ctx: r.Context(), parts: tc.parts[n]}}
				if len(body.parts) > 1 {
					body.pause = 15 * time.Second
				}
				n++
				return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
			})})
			require.NoError(t, err)
			defer c.Close()
			got, err := numbers(c.Events(t.Context(), "x1", 0))
			if tc.want == "" {
				require.NoError(t, err, name)
				require.Equal(t, []uint64{1}, got, name)
				return
			}
			require.ErrorContains(t, err, tc.want, name)
			require.Greater(t, n, 10, name)
		})
	}
}

// cutAfter is a body that breaks after its parts.
type cutAfter struct{ slow }

// Read gives the next part.
func (c *cutAfter) Read(p []byte) (int, error) {
	if len(c.parts) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return c.slow.Read(p)
}
