package ndjson_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/ndjson"
)

// one is a line with the bytes that follow it.
func one(mark string, seq int, b string) string {
	return fmt.Sprintf("%s{\"id\":1,\"seq\":%d,\"type\":\"stdout\",\"raw\":%d}\n%s", mark, seq, len(b), b)
}

func TestBytesFollowALine(t *testing.T) {
	t.Parallel()
	const mark = "MARK"
	tests := []struct {
		name, come string
		want       []string
		end        error
	}{
		{"bytes", one(mark, 1, "a\nb") + mark + "{}\n", []string{one(mark, 1, "a\nb"), mark + "{}"}, io.EOF},
		{"two in a row", one(mark, 1, "\n") + one(mark, 2, "\xff\x00\n\n"), []string{one(mark, 1, "\n"), one(mark, 2, "\xff\x00\n\n")}, io.EOF},
		{"behind what is not the session's", "words " + one(mark, 1, "a\n") + mark + "{}\n", []string{"words " + one(mark, 1, "a\n"), mark + "{}"}, io.EOF},
		{"fewer, before a mark", mark + "{\"raw\":9}\nab" + mark + "{}\n", []string{mark + "{\"raw\":9}\nab", mark + "{}"}, io.EOF},
		{"none, before a mark", mark + "{\"a\":1,\"raw\":9}\n" + mark + "{}\n", []string{mark + "{\"a\":1,\"raw\":9}\n", mark + "{}"}, io.EOF},
		{"without the mark", "{\"a\":1,\"raw\":9}\nab\n", []string{"{\"a\":1,\"raw\":9}", "ab"}, io.EOF},
		{"too many", mark + "{\"a\":1,\"raw\":65537}\nab\n", []string{mark + "{\"a\":1,\"raw\":65537}", "ab"}, io.EOF},
		{"a text", mark + "{\"text\":\",\\\"raw\\\":3}\"}\nab\n", []string{mark + "{\"text\":\",\\\"raw\\\":3}\"}", "ab"}, io.EOF},
		{"of something in it", mark + "{\"m\":{\"a\":1,\"raw\":3}}\nab\n", []string{mark + "{\"m\":{\"a\":1,\"raw\":3}}", "ab"}, io.EOF},
		{"cut off", mark + "{\"a\":1,\"raw\":9}\nab", nil, io.ErrUnexpectedEOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			come := strings.ReplaceAll(tt.come, "{\"raw\"", "{\"a\":1,\"raw\"")
			for _, src := range []io.Reader{strings.NewReader(come), iotest.OneByteReader(strings.NewReader(come))} {
				r := ndjson.NewReader(src, 1<<10).Mark([]byte(mark))
				for _, want := range tt.want {
					line, err := r.Next()
					require.NoError(t, err)
					require.Equal(t, strings.ReplaceAll(want, "{\"raw\"", "{\"a\":1,\"raw\""), string(line))
				}
				_, err := r.Next()
				require.ErrorIs(t, err, tt.end)
				if errors.Is(tt.end, io.ErrUnexpectedEOF) {
					require.Equal(t, come, string(r.Waiting()))
				} else {
					require.Nil(t, r.Waiting())
				}
			}
			whole := ndjson.Whole([]byte(come), []byte(mark))
			require.Len(t, come[:whole], map[bool]int{true: len(come), false: 0}[errors.Is(tt.end, io.EOF)])
		})
	}
}

// TestBytesOfAnySource: in whatever pieces they come, lines and bytes are those that were
// written, and Whole cuts between them alone.
func TestBytesOfAnySource(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const mark = "\x01mark"
		var want []string
		var all bytes.Buffer
		for n := range rapid.IntRange(1, 20).Draw(t, "lines") {
			if b := rapid.SliceOfN(rapid.ByteRange('\n', 'c'), 0, 40).Draw(t, "bytes"); len(b) > 0 {
				want = append(want, one(mark, n, string(b)))
				all.WriteString(want[n])
				continue
			}
			want = append(want, fmt.Sprintf(`%s{"id":%d,"type":"started"}`, mark, n))
			all.WriteString(want[n] + "\n")
		}
		come := all.Bytes()
		at := rapid.IntRange(0, len(come)).Draw(t, "cut")
		whole := ndjson.Whole(come[:at], []byte(mark))
		for i, part := range [][]byte{come[:whole], come[whole:]} {
			r := ndjson.NewReader(iotest.HalfReader(bytes.NewReader(part)), 1<<10).Mark([]byte(mark))
			for {
				line, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil || len(want) == 0 || want[0] != string(line) {
					t.Fatalf("part %d: %q, %v, due %q", i, line, err, want)
				}
				if f, err := ndjson.ParseFrame(bytes.TrimPrefix(line, []byte(mark))); err != nil || f.Raw != len(f.Bytes) {
					t.Fatalf("%q: %v, %v", line, f, err)
				}
				want = want[1:]
			}
		}
		if len(want) > 0 {
			t.Fatalf("left: %q", want)
		}
	})
}
