package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// execution is a server with one execution, x1, which goes on until it is cancelled.
type execution struct {
	cancelled chan struct{}
	refuse    bool // the cancellation is answered with an error
}

// ServeHTTP answers.
func (x *execution) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/cancel"):
		if x.refuse {
			says(http.StatusServiceUnavailable, `{"error":{"code":"draining","message":"the server ends"}}`)(w, r)
			return
		}
		close(x.cancelled)
		w.WriteHeader(http.StatusAccepted)
	case strings.HasSuffix(r.URL.Path, "/events"):
		streams(w, printed(1))
		select {
		case <-x.cancelled:
			streams(w, `{"seq":2,"cell":-1,"type":"final","outcome":"cancelled"}`)
		case <-r.Context().Done():
		}
	default:
		says(http.StatusOK, `{"id":"x1"}`)(w, r)
	}
}

// TestRun starts an execution and follows it to its end; then there is nothing to
// cancel.
func TestRun(t *testing.T) {
	t.Parallel()
	s, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			streams(w, printed(1), final(2))
			return
		}
		says(http.StatusOK, `{"id":"x1"}`)(w, r)
	})
	got, err := numbers(c.Run(ctx, client.Execute{ID: "x1", Session: "a"}))
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2}, got)
	require.Equal(t, []asked{
		{method: "POST", path: "/api/executions", body: `{"id":"x1","session":"a","cells":null}`},
		{method: "GET", path: "/api/executions/x1/events"},
	}, s.seen())
}

// TestARunWhoseContextEnds is cancelled, and its events go on to the end that says so.
func TestARunWhoseContextEnds(t *testing.T) {
	t.Parallel()
	x := &execution{cancelled: make(chan struct{})}
	_, c := serve(t, client.Options{}, x.ServeHTTP)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last messages.Event
	for e, err := range c.Run(ctx, client.Execute{Session: "a"}) {
		require.NoError(t, err)
		last = e
		cancel()
	}
	require.Equal(t, messages.OutcomeCancelled, last.(messages.Final).Result.Outcome)
}

// TestARunThatCannotBeCancelled ends with why its context did, and with what the server
// said.
func TestARunThatCannotBeCancelled(t *testing.T) {
	t.Parallel()
	x := &execution{cancelled: make(chan struct{}), refuse: true}
	_, c := serve(t, client.Options{}, x.ServeHTTP)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var got error
	for _, err := range c.Run(ctx, client.Execute{Session: "a"}) {
		got = err
		cancel(enough)
	}
	require.ErrorIs(t, got, enough)
	require.ErrorContains(t, got, "the server ends")
}

// TestARunThatIsLeft is cancelled before the consumer goes on.
func TestARunThatIsLeft(t *testing.T) {
	t.Parallel()
	x := &execution{cancelled: make(chan struct{})}
	_, c := serve(t, client.Options{}, x.ServeHTTP)
	for e, err := range c.Run(ctx, client.Execute{Session: "a"}) {
		require.NoError(t, err)
		require.EqualValues(t, 1, e.Pos().Seq)
		break
	}
	select {
	case <-x.cancelled:
	default:
		require.Fail(t, "it was left running")
	}
}

// TestARunThatDoesNotStart is an error, and nothing is cancelled.
func TestARunThatDoesNotStart(t *testing.T) {
	t.Parallel()
	s, c := serve(t, client.Options{Patience: -1}, func(w http.ResponseWriter, _ *http.Request) { cut(w) })
	_, err := numbers(c.Run(ctx, client.Execute{Session: "a"}))
	require.ErrorContains(t, err, "POST api/executions: ")
	require.Len(t, s.seen(), 1)
}

// TestRunTool passes the parts of an output on, and returns the result.
func TestRunTool(t *testing.T) {
	t.Parallel()
	s, c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(": alive\n\n" +
			"event: output\ndata: {\"output\":\"text\",\"append\":true,\"value\":\"a\"}\n\n" +
			"event: new\ndata: of a newer server\n\n" +
			"event: output\ndata: {\"output\":\"text\",\"append\":true,\"value\":\"b\",\"done\":true}\n\n" +
			"event: done\ndata: {\"tool\":\"a\",\"outcome\":\"ok\",\"outputs\":{\"text\":\"ab\"}}\n\n"))
	})
	var parts []string
	r, err := c.RunTool(ctx, "a/b", client.RunTool{Inputs: []byte(`{"n":1}`), Run: "r1", Timeout: 1.5}, func(e messages.ToolEvent) error {
		parts = append(parts, e.Output+"="+string(e.Value))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{`text="a"`, `text="b"`}, parts)
	require.Equal(t, messages.OutcomeOK, r.Outcome)
	require.JSONEq(t, `{"text":"ab"}`, string(r.Outputs))
	require.Equal(t, []asked{{method: "POST", path: "/api/tools/a%2Fb/stream", body: `{"inputs":{"n":1},"run_id":"r1","timeout_seconds":1.5}`}}, s.seen())
}

// TestARunOfAToolThatBreaks is an error that says how; it is not made again.
func TestARunOfAToolThatBreaks(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for name, tc := range map[string]struct {
		events string
		want   string
	}{
		"cut":               {"event: output\ndata: {\"output\":\"x\"}\n\n", "the connection broke"},
		"the server ends":   {"event: error\ndata: {\"code\":\"closed\"}\n\n", "the server ended during the run"},
		"a part is no JSON": {"event: output\ndata: {\n\n", "the server's events make no sense"},
		"the end is none":   {"event: done\ndata: []\n\n", "the server's events make no sense"},
		"emit":              {"event: output\ndata: {\"output\":\"full\"}\n\n", full.Error()},
	} {
		s, c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(tc.events))
			cut(w)
		})
		r, err := c.RunTool(ctx, "a", client.RunTool{}, func(e messages.ToolEvent) error {
			if e.Output == "full" {
				return full
			}
			return nil
		})
		require.ErrorContains(t, err, "run tool a: "+tc.want, name)
		require.Equal(t, messages.ToolResult{}, r, name)
		require.Len(t, s.seen(), 1, name)
	}
	_, c := serve(t, client.Options{}, says(http.StatusOK, ""))
	_, err := c.RunTool(ctx, "a", client.RunTool{Inputs: []byte("{")}, nil)
	require.ErrorContains(t, err, "run tool a: ", "inputs that are no JSON are not sent")
}

// TestAToolWhoseClientLeaves: the run hears of it by its connection.
func TestAToolWhoseClientLeaves(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	_, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: output\ndata: {\"output\":\"x\"}\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.RunTool(ctx, "a", client.RunTool{}, func(messages.ToolEvent) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	select {
	case <-left:
	case <-time.After(time.Minute):
		require.Fail(t, "the server was not told")
	}
}
