package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/sse"
)

func all(r io.Reader, limit int) ([]sse.Event, error) {
	s := sse.NewReader(r, limit)
	var events []sse.Event
	for {
		e, err := s.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stream string
		want   []sse.Event
	}{
		"one":                      {"data: a\n\n", []sse.Event{{Data: "a"}}},
		"no blank":                 {"data:a\n\n", []sse.Event{{Data: "a"}}},
		"only one blank is eaten":  {"data:  a\n\n", []sse.Event{{Data: " a"}}},
		"named":                    {"event: output:x\ndata: {}\n\n", []sse.Event{{Name: "output:x", Data: "{}"}}},
		"several lines":            {"data: a\ndata: b\ndata\n\n", []sse.Event{{Data: "a\nb\n"}}},
		"carriage returns":         {"data: a\r\rdata: b\r\n\r\n", []sse.Event{{Data: "a"}, {Data: "b"}}},
		"comments":                 {": ping\n\n: ping\ndata: a\n\n", []sse.Event{{Data: "a"}}},
		"a name without data":      {"event: x\n\ndata: a\n\n", []sse.Event{{Data: "a"}}},
		"ids stay":                 {"id: 7\ndata: a\n\ndata: b\n\n", []sse.Event{{ID: "7", Data: "a"}, {ID: "7", Data: "b"}}},
		"unknown fields":           {"foo\nbar: 1\n data: b\ndata : c\ndata: a\n\n", []sse.Event{{Data: "a"}}},
		"retry":                    {"retry: 50\ndata: a\n\nretry: x\nretry: -1\nretry: +1\nretry\ndata: b\n\n", []sse.Event{{Data: "a", Retry: 50 * time.Millisecond}, {Data: "b", Retry: 50 * time.Millisecond}}},
		"an id is taken away":      {"id: 7\ndata: a\n\nid\ndata: b\n\nid: \x00\ndata: c\n\n", []sse.Event{{ID: "7", Data: "a"}, {Data: "b"}, {Data: "c"}}},
		"longer than a buffer":     {"data: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", []sse.Event{{Data: strings.Repeat("x", 100<<10)}}},
		"byte order mark":          {"\ufeffdata: a\n\n", []sse.Event{{Data: "a"}}},
		"an end without its line":  {"data: a\n\ndata: b\n", []sse.Event{{Data: "a"}}},
		"an end within a line":     {"data: a\n\ndata: b", []sse.Event{{Data: "a"}}},
		"data may be empty":        {"data\n\n", []sse.Event{{}}},
		"a colon belongs to value": {"data: a:b\n\n", []sse.Event{{Data: "a:b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, cut := range []func(io.Reader) io.Reader{
				func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader,
			} {
				got, err := all(cut(strings.NewReader(tc.stream)), 0)
				require.ErrorIs(t, err, io.EOF)
				require.Empty(t, cmp.Diff(tc.want, got))
			}
		})
	}
}

func TestAnEventIsBounded(t *testing.T) {
	t.Parallel()
	_, err := all(strings.NewReader("data: "+strings.Repeat("x", 100)+"\n\n"), 50)
	require.ErrorIs(t, err, sse.ErrTooLong)
	_, err = all(strings.NewReader(strings.Repeat("data: xxxxxxxxxx\n", 100)+"\n"), 50)
	require.ErrorIs(t, err, sse.ErrTooLong, "the lines of an event together")
	got, err := all(strings.NewReader(strings.Repeat("data: xxxxxxxxxx\n\n", 100)), 50)
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, got, 100)
}

func TestAReadErrorIsPassedOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := all(io.MultiReader(strings.NewReader("data: a\n"), iotest.ErrReader(broken)), 0)
	require.ErrorIs(t, err, broken)
}

// FuzzReader holds that the cut of the bytes does not matter, and that nothing
// but the bytes decides.
func FuzzReader(f *testing.F) {
	f.Add("data: a\r\n\r\nevent: x\ndata: b\n\n")
	f.Add("\ufeffid: 1\rdata\r\r")
	f.Fuzz(func(t *testing.T, stream string) {
		whole, err := all(strings.NewReader(stream), 1<<10)
		cut, err2 := all(iotest.OneByteReader(strings.NewReader(stream)), 1<<10)
		if diff := cmp.Diff(whole, cut); diff != "" {
			t.Fatal(diff)
		}
		if errors.Is(err, io.EOF) != errors.Is(err2, io.EOF) {
			t.Fatal(err, err2)
		}
	})
}
