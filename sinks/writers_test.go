package sinks_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/sinktest"
)

// consume gives events to a sink and ends it.
func consume(t *testing.T, s sinks.Sink, events ...messages.Event) {
	t.Helper()
	for _, e := range events {
		require.NoError(t, s.Consume(t.Context(), e))
	}
	require.NoError(t, s.Flush(t.Context()))
	require.NoError(t, s.Close())
}

func errOut(text string) messages.Stream {
	return messages.Stream{Name: messages.StderrStream, Text: text}
}

func plain(text string) messages.Display {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return messages.Display{Data: messages.Bundle{messages.MIMEPlain: raw}}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	done := messages.Status{Status: messages.CellComplete}
	for name, tc := range map[string]struct {
		o      sinks.ConsoleOptions
		events []messages.Event
		want   string
	}{
		"text":                   {events: []messages.Event{out("a\nb"), out("c\n"), done}, want: "a\nbc\n"},
		"the last line is ended": {events: []messages.Event{out("a"), done, out("b"), done}, want: "a\nb\n"},
		"displays on their own":  {events: []messages.Event{out("a"), plain("shown"), plain(""), messages.ExecuteResult{Data: plain("2").Data}, done}, want: "a\nshown\n2\n"},
		"status is silent":       {events: []messages.Event{messages.Status{Data: messages.RawJSON(`{"op":"x"}`)}, messages.Display{Data: messages.Bundle{"application/x-coppice-status": messages.RawJSON(`{"op":"x"}`)}}}, want: ""},
		"an error":               {events: []messages.Event{messages.Error{ErrorDetails: messages.ErrorDetails{Traceback: []string{"\x1b[31mE\x1b[0m", "x"}}}}, want: "E\nx\n"},
		"an error, colour":       {o: sinks.ConsoleOptions{Colour: true}, events: []messages.Event{messages.Error{ErrorDetails: messages.ErrorDetails{Traceback: []string{"\x1b[31mE\x1b[0m", "x"}}}}, want: "\x1b[31mE\x1b[0m\nx\n"},
		"notice and prompt":      {events: []messages.Event{messages.InputRequest{Prompt: "name? "}, messages.Notice{Text: "no\x07tice"}}, want: "name? \nnotice\n"},
		"no colour":              {events: []messages.Event{out("\x1b[1mbold\x1b[0m\x1b[2J\x1b]0;t\x07\n")}, want: "bold\n"},
		"colour":                 {o: sinks.ConsoleOptions{Colour: true}, events: []messages.Event{out("\x1b[1mbold\x1b[0m\x1b[2J\x1b]0;t\x07\n")}, want: "\x1b[1mbold\x1b[0m\n"},
		"colour left on":         {o: sinks.ConsoleOptions{Colour: true}, events: []messages.Event{out("\x1b[1mbold\n"), done}, want: "\x1b[1mbold\n\x1b[0m"},
		"cut sequence":           {events: []messages.Event{out("\x1b]0;ti"), out("tle\x07x\n")}, want: "x\n"},
		"progress":               {events: []messages.Event{out("1%\r"), out("2%\r"), done}, want: "1%\r2%\r\n"},
		"prefix":                 {o: sinks.ConsoleOptions{Prefix: "s| "}, events: []messages.Event{out("a\nb"), out("c\n\n"), plain("d\ne"), done}, want: "s| a\ns| bc\ns| \ns| d\ns| e\n"},
		"prefix and progress":    {o: sinks.ConsoleOptions{Prefix: "s| "}, events: []messages.Event{out("1%\r2%"), done}, want: "s| 1%\rs| 2%\n"},
		"prefix and colour":      {o: sinks.ConsoleOptions{Prefix: "s| ", Colour: true}, events: []messages.Event{out("\x1b[1mx\n\x1b[0m"), done}, want: "\x1b[1ms| x\n\x1b[0m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			consume(t, sinks.NewConsole(&b, tc.o), tc.events...)
			require.Equal(t, tc.want, b.String())
		})
	}
}

func TestConsoleSplitsTheStreams(t *testing.T) {
	t.Parallel()
	var o, e bytes.Buffer
	consume(t, sinks.NewConsole(&o, sinks.ConsoleOptions{Err: &e}), out("out"), errOut("err"), plain("shown"), messages.Error{ErrorDetails: messages.ErrorDetails{Name: "E", Message: "m"}})
	require.Equal(t, "out\nshown\n", o.String())
	require.Equal(t, "err\nE: m\n", e.String())
}

// failing is a writer that returns err.
type failing struct{ err error }

func (w failing) Write(p []byte) (int, error) {
	if w.err == nil {
		return len(p) / 2, nil
	}
	return 0, w.err
}

func TestReaderThatLeft(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer w.Close()
	for name, w := range map[string]io.Writer{"pipe": w, "EPIPE": failing{&os.PathError{Op: "write", Err: syscall.EPIPE}}, "io.Pipe": failing{io.ErrClosedPipe}, "closed file": failing{os.ErrClosed}} {
		for kind, s := range map[string]sinks.Sink{"console": sinks.NewConsole(w, sinks.ConsoleOptions{}), "events": sinks.NewEvents(w)} {
			require.ErrorIs(t, s.Consume(t.Context(), out("x\n")), sinks.ErrConsumerGone, "%s, %s", name, kind)
		}
	}
	full := errors.New("disk full")
	err = sinks.NewEvents(failing{full}).Consume(t.Context(), out("x"))
	require.ErrorIs(t, err, full)
	require.NotErrorIs(t, err, sinks.ErrConsumerGone)
	require.ErrorIs(t, sinks.NewEvents(failing{}).Consume(t.Context(), out("x")), io.ErrShortWrite)
}

func TestEventsAreOneObjectALine(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	events := sinktest.Events()
	consume(t, sinks.NewEvents(&b), events...)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Len(t, lines, len(events))
	require.Equal(t, `{"seq":13,"cell":0,"type":"error","name":"ValueError","message":"x","traceback":["\u001b[31mValueError\u001b[0m: x"]}`, lines[12])
	require.True(t, strings.HasPrefix(lines[17], `{"seq":18,"cell":-1,"type":"final","outcome":"error",`), lines[17])
	for i, line := range lines {
		e, err := messages.ParseEvent([]byte(line))
		require.NoError(t, err)
		require.Equal(t, events[i].Pos(), e.Pos())
		require.Equal(t, events[i].Type(), e.Type())
	}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "journal.jsonl")
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.FixedZone("x", 3600))
	o := sinks.JournalOptions{Path: path, MaxBytes: 400, Keep: 2, Now: func() time.Time { return at }}
	j, err := sinks.OpenJournal(o)
	require.NoError(t, err)
	s := j.For(messages.Execute{ID: "id", Key: messages.SessionKey{Session: "a\"b", Cwd: "/w"}})
	require.NoError(t, s.Consume(t.Context(), out("x")))
	require.NoError(t, j.Close())

	j, err = sinks.OpenJournal(o)
	require.NoError(t, err)
	s = j.For(messages.Execute{ID: "id2"})
	for i := range 11 {
		require.NoError(t, s.Consume(t.Context(), out(fmt.Sprintf("line %d", i))))
	}
	require.NoError(t, s.Consume(t.Context(), out(strings.Repeat("y", 1000))), "a line that alone is too long is kept whole")
	require.NoError(t, s.Flush(t.Context()))
	require.NoError(t, s.Close())
	require.NoError(t, j.Close())
	require.NoError(t, j.Close())
	require.ErrorIs(t, s.Consume(t.Context(), out("late")), sinks.ErrClosed)

	var sizes []int
	texts := ""
	for _, name := range []string{path + ".2", path + ".1", path} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		n := 0
		for line := range strings.Lines(string(data)) {
			var entry struct {
				At, Exec, Session, Cwd string
				Event                  struct{ Type, Text string }
			}
			require.NoError(t, json.Unmarshal([]byte(line), &entry), line)
			require.Equal(t, "2026-01-02T02:04:05.678Z", entry.At)
			require.Equal(t, "stdout", entry.Event.Type)
			texts += entry.Event.Text + "\n"
			n++
		}
		sizes = append(sizes, n)
		if st, err := os.Stat(name); err == nil && runtime.GOOS != "windows" {
			require.EqualValues(t, 0o600, st.Mode().Perm())
		}
	}
	require.NoFileExists(t, path+".3")
	require.Equal(t, []int{3, 3, 1}, sizes)
	require.Equal(t, "line 5\nline 6\nline 7\nline 8\nline 9\nline 10\n"+strings.Repeat("y", 1000)+"\n", texts)
}

func TestJournalThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	_, err := sinks.OpenJournal(sinks.JournalOptions{})
	require.ErrorContains(t, err, "no path")
	_, err = sinks.OpenJournal(sinks.JournalOptions{Path: t.TempDir()})
	require.ErrorContains(t, err, "open journal")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = sinks.OpenJournal(sinks.JournalOptions{Path: filepath.Join(file, "x")})
	require.ErrorContains(t, err, "open journal")
}

func TestJournalOfAHub(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := sinks.OpenJournal(sinks.JournalOptions{Path: path})
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	h := start(t, sinks.HubOptions{Sinks: []sinks.Attachment{j.Attachment()}})
	c := h.open(t, "a")
	require.NoError(t, c.Emit(t.Context(), out("x")))
	c.Flush(t.Context())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Regexp(t, `^\{"at":"[^"]+Z","exec":"id-of-a","session":"a","cwd":"/w","event":\{"seq":1,"cell":0,"type":"stdout","text":"x"\}\}\n$`, string(data))
}

func TestLive(t *testing.T) {
	t.Parallel()
	live := sinks.NewLive(3, 100000)
	a := live.For(messages.Execute{ID: "a", Key: messages.SessionKey{Session: "s"}})
	events, missed := live.Since(0)
	require.Empty(t, events)
	require.Zero(t, missed)
	for i := range 5 {
		require.NoError(t, a.Consume(t.Context(), out(fmt.Sprint(i))))
	}
	numbers := func(events []sinks.LiveEvent) (n []uint64) {
		for _, e := range events {
			n = append(n, e.N)
		}
		return n
	}
	for after, want := range map[uint64]struct {
		numbers []uint64
		missed  uint64
	}{0: {[]uint64{3, 4, 5}, 2}, 1: {[]uint64{3, 4, 5}, 1}, 2: {[]uint64{3, 4, 5}, 0}, 4: {[]uint64{5}, 0}, 5: {nil, 0}, 9: {nil, 0}} {
		events, missed := live.Since(after)
		require.Equal(t, want.numbers, numbers(events), "after %d", after)
		require.Equal(t, want.missed, missed, "after %d", after)
	}
	events, _ = live.Since(4)
	require.Empty(t, cmp.Diff(sinks.LiveEvent{N: 5, Exec: "a", Key: messages.SessionKey{Session: "s"}, Event: out("4")}, events[0]))

	require.NoError(t, live.Wait(t.Context(), 4))
	woken := make(chan error, 1)
	go func() { woken <- live.Wait(t.Context(), 5) }()
	require.NoError(t, a.Consume(t.Context(), out(strings.Repeat("x", 200000))))
	require.NoError(t, <-woken)
	events, missed = live.Since(0)
	require.Equal(t, []uint64{6}, numbers(events), "one event that is too large is kept all the same")
	require.EqualValues(t, 5, missed)
}
