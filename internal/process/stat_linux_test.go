package process

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const statLine = "7168 (cat) R 7161 7161 4359 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 160218 3133440 382"

func TestParseStat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, line string
		want       stat
		wrong      string
	}{
		{name: "plain", line: statLine, want: stat{state: 'R', ppid: 7161, threads: 1, start: 160218, pages: 382}},
		{name: "a name that imitates the line", line: "1 (a) Z 9 (b c) S 5 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77", want: stat{state: 'S', ppid: 5, threads: 1, start: 77}},
		{name: "empty", wrong: "no process name in the stat line"},
		{name: "cut", line: "1 (a) S 5", wrong: "2 fields after the name in the stat line"},
		{name: "no number", line: "1 (a) S x 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77", wrong: `parent in the stat line: strconv.Atoi: parsing "x": invalid syntax`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseStat([]byte(tt.line))
			if tt.wrong != "" {
				require.EqualError(t, err, tt.wrong)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

// TestALineIsReadWithoutRoomOnTheHeap: the table of all processes is read while sessions are to answer,
// and what is thrown away there is collected beside them.
func TestALineIsReadWithoutRoomOnTheHeap(t *testing.T) {
	line := []byte(statLine)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = parseStat(line) })) // TestParseStat has the answers
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(statLine))
	f.Add([]byte("1 (a) b) c)"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStat(b)
		if err == nil && s.state == 0 {
			t.Fatalf("a process without a state from %q", b)
		}
	})
}
