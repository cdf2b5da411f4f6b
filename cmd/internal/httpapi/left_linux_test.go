package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi/handing"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// keeps is a host whose sessions outlive it, and an API of it.
func keeps(t *testing.T, home string, left io.Reader) (*coppice.Host, *API) {
	t.Helper()
	host, err := coppice.Start(t.Context(), coppice.Options{
		Backend: coppice.Runner(coppice.RunnerOptions{}), Home: home, Python: testpython.Path(t), Env: os.Environ(), KeepSessions: true, MaxSessions: 8,
	})
	require.NoError(t, err)
	t.Cleanup(func() { host.Shutdown(context.Background()) })
	api, err := New(Options{Host: host, Cwd: home, KeepAlive: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	var read *Left
	if left != nil {
		read = ReadLeft(left)
	}
	require.NoError(t, api.TakeOver(read))
	return host, api
}

// starts starts an execution, which has its place then.
func starts(t *testing.T, a *API, e client.Execute) *execution {
	t.Helper()
	run, err := a.task(e)
	require.NoError(t, err)
	info := client.Execution{ID: e.ID, Kind: client.KindCall, Session: e.Session, Cwd: a.Cwd(), Title: titleOf(e.Cells), Cells: len(e.Cells)}
	x, mine, err := a.begin(t.Context(), info, e, run)
	require.NoError(t, err)
	require.True(t, mine)
	return x
}

func code(text string) []messages.Cell { return []messages.Cell{{Code: text}} }

// ended waits for the end of an execution, and returns its result.
func ended(t *testing.T, a *API, id string) client.Execution {
	t.Helper()
	x, err := a.lookup(id)
	require.NoError(t, err)
	<-x.ended
	return x.describe(true)
}

// TestLeft: of executions that have ended, that run, and that wait, the next server has all,
// under their ids and with their events by their numbers; nothing runs twice.
func TestLeft(t *testing.T) {
	home := t.TempDir()
	host, a := keeps(t, home, nil)
	gate := filepath.Join(home, "gate")
	starts(t, a, client.Execute{ID: "first", Session: "s", Cells: code("x = ['first']; print('<&>')")})
	before := ended(t, a, "first")
	require.NoError(t, host.Session("s", coppice.In(home)).Pin(t.Context(), true))
	running := starts(t, a, client.Execute{ID: "running", Session: "s", Cells: code(fmt.Sprintf("import os, time\nprint('one', flush=True)\nwhile not os.path.exists(%q): time.sleep(.005)\nx.append('running'); print('two')", gate))})
	for _, id := range []string{"second", "third"} {
		starts(t, a, client.Execute{ID: id, Session: "s", Cells: code("x.append('" + id + "'); print(x)")})
	}
	cancelled := starts(t, a, client.Execute{ID: "cancelled", Session: "s", Cells: code("x.append('cancelled')")})
	cancelled.cancel()
	<-cancelled.ended
	require.NoError(t, running.log.Wait(t.Context(), 1)) // it has printed
	seen, _, err := running.log.Read(0, batch)
	require.NoError(t, err)

	once := filepath.Join(home, "once")
	starts(t, a, client.Execute{ID: "begins", Session: "new", Cells: code(fmt.Sprintf("open(%q, 'a').write('x')", once))})

	reader, done := a.handing.Reading(t.Context())
	defer done()
	a.Hold()
	<-reader.Done()
	require.ErrorIs(t, context.Cause(reader), handing.ErrHeld)
	pins, err := a.Leaving(t.Context())
	require.NoError(t, err)
	require.True(t, a.handing.HasLeft())
	host.Leave(t.Context())
	var left bytes.Buffer
	require.NoError(t, a.Export(t.Context(), &left, pins))
	a.End(t.Context())
	require.False(t, running.hasEnded(), "how it ends is for the next server to say")

	next, b := keeps(t, home, &left)
	require.GreaterOrEqual(t, b.changes.newest(), a.changes.newest())
	after := ended(t, b, "first")
	was, err := json.Marshal(before)
	require.NoError(t, err)
	is, err := json.Marshal(after)
	require.NoError(t, err)
	require.JSONEq(t, string(was), string(is))
	require.Equal(t, messages.OutcomeCancelled, outcomeOr(ended(t, b, "cancelled")))
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	require.Equal(t, messages.OutcomeOK, ended(t, b, "running").Outcome)
	x, err := b.lookup("running")
	require.NoError(t, err)
	again, _, err := x.log.Read(0, 1<<20)
	require.NoError(t, err)
	require.Equal(t, seen, again[:len(seen)])
	require.Contains(t, ended(t, b, "second").Result.Text, "['first', 'running', 'second']")
	require.Contains(t, ended(t, b, "third").Result.Text, "['first', 'running', 'second', 'third']")
	info, has, err := next.Find(t.Context(), messages.SessionKey{Session: "s", Cwd: home})
	require.NoError(t, err)
	require.True(t, has)
	require.Eventually(t, func() bool {
		info, _, err = next.Find(t.Context(), info.Key)
		return err == nil && info.Pinned
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, messages.OutcomeOK, ended(t, b, "begins").Outcome) // its kernel was being started, or had begun it
	data, err := os.ReadFile(once)
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
	require.Len(t, b.order, 6)
}

// outcomeOr is how an execution ended that was cancelled while it waited.
func outcomeOr(x client.Execution) messages.Outcome {
	if x.Outcome == messages.OutcomeNotStarted {
		return messages.OutcomeCancelled
	}
	return x.Outcome
}

// TestLeftWithoutOneThatWasRefused: an execution that is refused while all of them are written down,
// since the host has left before it had a place, is waited for no longer, and is not told of.
func TestLeftWithoutOneThatWasRefused(t *testing.T) {
	_, a := keeps(t, t.TempDir(), nil)
	refuse := make(chan struct{})
	_, _, err := a.add(trace.SpanContext{}, client.Execution{ID: "late", Kind: client.KindCall}, "", func(context.Context, *execution, func()) (messages.Result, messages.RawJSON, error) {
		<-refuse
		return messages.Result{}, nil, coppice.ErrClosed
	})
	require.NoError(t, err)
	a.Hold()
	pins, err := a.Leaving(t.Context())
	require.NoError(t, err)
	var to bytes.Buffer
	exported := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // far more than it takes
	defer cancel()
	go func() { exported <- a.Export(ctx, &to, pins) }()
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.over // it has looked who is there
	}, time.Minute, time.Millisecond)
	close(refuse)
	require.NoError(t, <-exported)
	left, err := read(&to)
	require.NoError(t, err)
	require.Zero(t, left.head.Executions)
}

// TestReleased: what ends while a server is held is told when it goes on.
func TestReleased(t *testing.T) {
	home := t.TempDir()
	_, a := keeps(t, home, nil)
	gate := filepath.Join(home, "gate")
	x := starts(t, a, client.Execute{ID: "one", Session: "s", Cells: code(fmt.Sprintf("import os, time\nwhile not os.path.exists(%q): time.sleep(.005)\nopen(%q, 'w').close()", gate, gate+"2"))})
	lasting, passing := a.Bound()
	require.Empty(t, lasting)
	require.Empty(t, passing)
	a.Hold()
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	require.Eventually(t, func() bool { _, err := os.Stat(gate + "2"); return err == nil }, time.Minute, 5*time.Millisecond)
	require.False(t, x.hasEnded())
	reader, done := a.handing.Reading(t.Context())
	<-reader.Done()
	done()
	a.Release()
	<-x.ended
	reader, done = a.handing.Reading(t.Context())
	require.NoError(t, reader.Err())
	done()
	require.False(t, a.handing.HasLeft())

	y := starts(t, a, client.Execute{ID: "two", Session: "s", Mode: messages.ModePerCall, Cells: code("import time; time.sleep(3600)")})
	_, passing = a.Bound()
	require.Equal(t, []string{"the execution two: its kernel is for this call alone"}, passing)
	y.cancel()
	<-y.ended
	for _, e := range []client.Execute{
		{Mode: messages.ModePerCall}, {Env: map[string]string{"A": "b"}, Cells: make([]messages.Cell, 2)}, {CallEnv: map[string]string{"A": "b"}, Cells: make([]messages.Cell, 2)},
	} {
		one := &execution{info: client.Execution{Kind: client.KindCall}, asked: asked(t, e)}
		require.NotEmpty(t, one.bound())
	}
	require.Empty(t, (&execution{info: client.Execution{Kind: client.KindCall}, asked: asked(t, client.Execute{Env: map[string]string{"A": "b"}, Cells: make([]messages.Cell, 1)})}).bound())
	require.NotEmpty(t, (&execution{info: client.Execution{Kind: client.KindNotebook}}).bound())
}

// TestReadRefuses what it does not understand, by name.
func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "EOF",
		"{":                     "EOF",
		"[]\n":                  "cannot unmarshal",
		"{\"version\":9}\n":     "is of version 9, and this one knows 1",
		strings.Repeat("x", 99): "EOF",
	} {
		_, err := read(strings.NewReader(text))
		require.ErrorContains(t, err, want)
	}
}

// FuzzLeft reads anything.
func FuzzLeft(f *testing.F) {
	f.Add([]byte("{\"version\":1,\"executions\":1}\n{\"info\":{},\"events\":1}\n{}\n"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		in, err := read(bytes.NewReader(data))
		for err == nil {
			var one leftExecution
			err = in.line(&one)
		}
	})
}

func asked(t *testing.T, e client.Execute) string {
	t.Helper()
	data, err := json.Marshal(e)
	require.NoError(t, err)
	return string(data)
}

// TestChangesOfAnEarlierServer are missed, and the numbers go on.
func TestChangesOfAnEarlierServer(t *testing.T) {
	c := newChanges()
	c.from(10)
	c.execution(client.Execution{ID: "x"})
	list, _ := c.since(7)
	require.Len(t, list, 2)
	require.Equal(t, uint64(3), list[0].Missed)
	require.Equal(t, uint64(11), list[1].Seq)
	page, more, newest, forgotten := c.page(0, 1<<62, true, 100, func(client.Change) bool { return true })
	require.Len(t, page, 1)
	require.False(t, more)
	require.Equal(t, []uint64{11, 10}, []uint64{newest, forgotten})
}
