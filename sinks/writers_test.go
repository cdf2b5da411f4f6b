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
		require.ErrorIs(t, sinks.NewEvents(w).Consume(t.Context(), out("x\n")), sinks.ErrConsumerGone, name)
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
	s := j.For(t.Context(), messages.Execute{ID: "id", Key: messages.SessionKey{Session: "a\"b", Cwd: "/w"}})
	require.NoError(t, s.Consume(t.Context(), out("x")))
	require.NoError(t, j.Close())

	j, err = sinks.OpenJournal(o)
	require.NoError(t, err)
	s = j.For(t.Context(), messages.Execute{ID: "id2"})
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
