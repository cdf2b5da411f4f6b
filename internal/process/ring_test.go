package process_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/process"
)

func TestRingTail(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		size   int
		writes []string
		n      int
		want   []string
	}{
		{name: "empty", n: 3},
		{name: "no lines wanted", writes: []string{"a\n"}, n: 0},
		{name: "fewer lines than wanted", writes: []string{"a\nb\n"}, n: 3, want: []string{"a", "b"}},
		{name: "the last ones", writes: []string{"a\nb\nc\n"}, n: 2, want: []string{"b", "c"}},
		{name: "an unfinished line counts", writes: []string{"a\nb", "c"}, n: 2, want: []string{"a", "bc"}},
		{name: "line ends of Windows", writes: []string{"a\r\nb\r\n"}, n: 2, want: []string{"a", "b"}},
		{name: "blank lines stay", writes: []string{"a\n\nb\n"}, n: 3, want: []string{"a", "", "b"}},
		{name: "exactly full", size: 4, writes: []string{"a\nb\n"}, n: 3, want: []string{"a", "b"}},
		{name: "a line that lost its beginning is dropped", size: 8, writes: []string{"first\n", "second\n"}, n: 3, want: []string{"second"}},
		{name: "unless it is all there is", size: 4, writes: []string{"abcdefgh"}, n: 3, want: []string{"efgh"}},
		{name: "and its line end too", size: 4, writes: []string{"abcdefg\n"}, n: 3, want: []string{"efg"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := process.NewRing(process.RingOptions{Size: tt.size})
			for _, w := range tt.writes {
				n, err := r.Write([]byte(w))
				require.NoError(t, err)
				require.Equal(t, len(w), n)
			}
			require.Equal(t, tt.want, r.Tail(tt.n))
		})
	}
}

// The ring keeps the end of the output whatever the sizes of the writes.
func TestRingKeepsTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 50).Draw(t, "size")
		r := process.NewRing(process.RingOptions{Size: size})
		var all strings.Builder
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 120), 0, 20).Draw(t, "writes") {
			w := strings.Repeat(fmt.Sprint(i%10), n) // no line ends: nothing is dropped
			all.WriteString(w)
			_, _ = r.Write([]byte(w))
		}
		want := all.String()
		want = want[max(0, len(want)-size):]
		require.Equal(t, want, r.String())
		require.EqualValues(t, all.Len(), r.Written())
	})
}

func TestLines(t *testing.T) {
	t.Parallel()
	var got []string
	r := process.NewRing(process.RingOptions{Tee: process.Lines(func(l string) { got = append(got, l) })})
	for _, w := range []string{"a", "b\r\n\ncd", "\n", "unfinished"} {
		_, _ = r.Write([]byte(w))
	}
	require.Equal(t, []string{"ab", "", "cd"}, got)

	got = nil
	long := strings.Repeat("x", 20<<10)
	process.Lines(func(l string) { got = append(got, l) })([]byte(long + "\n"))
	require.Len(t, got, 3)
	require.Equal(t, long, strings.Join(got, ""))
}
