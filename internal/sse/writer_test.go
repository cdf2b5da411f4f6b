package sse_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/sse"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ name, id, data, want string }{
		"data":                     {"", "", `{"a":1}`, "data: {\"a\":1}\n\n"},
		"numbered":                 {"", "7", "x", "id: 7\ndata: x\n\n"},
		"named":                    {"done", "", "x", "event: done\ndata: x\n\n"},
		"nothing":                  {"", "", "", "data: \n\n"},
		"lines":                    {"", "", "a\nb\r\nc\rd\n", "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"},
		"a name that forges data":  {"x\ndata: y", "1\r\n\r\n", "z", "event: x\nid: 1\ndata: z\n\n"},
		"data that forge an event": {"", "", "a\n\nid: 9\ndata: b", "data: a\ndata: \ndata: id: 9\ndata: data: b\n\n"},
	} {
		require.Equal(t, "before", string(sse.Append([]byte("before"), tt.name, tt.id, []byte(tt.data))[:6]), name)
		require.Equal(t, tt.want, string(sse.Append(nil, tt.name, tt.id, []byte(tt.data))), name)
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	for _, patience := range []time.Duration{0, time.Minute} {
		answer := httptest.NewRecorder()
		w := sse.NewWriter(answer, patience)
		require.NoError(t, w.Start())
		require.True(t, answer.Flushed)
		require.NoError(t, w.Event("output", "3", []byte("x")))
		require.NoError(t, w.Comment("alive\ndata: y"))
		w.End()
		require.Equal(t, ": here\n\nevent: output\nid: 3\ndata: x\n\n: alive\n\n", answer.Body.String())
		require.Equal(t, "text/event-stream", answer.Header().Get("Content-Type"))
		require.Equal(t, "no", answer.Header().Get("X-Accel-Buffering"))
	}
}

// TestManyWriters: events of several goroutines come whole.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	w := sse.NewWriter(answer, 0)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 50 {
				require.NoError(t, w.Event("e", "", []byte("a\nb")))
				require.NoError(t, w.Comment("alive"))
			}
		})
	}
	writers.Wait()
	events, err := all(answer.Body, 0)
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, events, 400)
	for _, e := range events {
		require.Equal(t, sse.Event{Name: "e", Data: "a\nb"}, e)
	}
}

// FuzzRoundTrip holds that what is written is read again, and nothing besides.
func FuzzRoundTrip(f *testing.F) {
	f.Add("output", "1", "a\r\nb", "c")
	f.Add("", "", "\n\n", " \r")
	f.Add("a:b", " ", ":\ndata: x", "\ufeff")
	f.Fuzz(func(t *testing.T, name, id, first, second string) {
		text := sse.Append(sse.Append([]byte(": here\n\n"), name, id, []byte(first)), "", "", []byte(second))
		got, err := all(strings.NewReader(string(text)), 0)
		require.ErrorIs(t, err, io.EOF)
		line := func(s string) string {
			return strings.FieldsFunc(s+"\n", func(r rune) bool { return r == '\r' || r == '\n' })[0]
		}
		if name != "" && !strings.ContainsAny(name[:1], "\r\n") {
			name = line(name)
		} else {
			name = ""
		}
		if id != "" && !strings.ContainsAny(id[:1], "\r\n") {
			id = line(id)
		} else {
			id = ""
		}
		if strings.ContainsRune(id, 0) {
			id = "" // the standard has readers pass it over
		}
		lines := strings.NewReplacer("\r\n", "\n", "\r", "\n")
		want := []sse.Event{{Name: name, ID: id, Data: lines.Replace(first)}, {ID: id, Data: lines.Replace(second)}}
		require.Empty(t, cmp.Diff(want, got))
	})
}
