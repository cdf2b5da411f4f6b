package runner

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/messages"
)

// narrow takes as much as room says of each write.
type narrow struct {
	room int
	got  strings.Builder
}

func (n *narrow) Write(p []byte) (int, error) {
	if len(p) <= n.room {
		return n.got.Write(p)
	}
	m, _ := n.got.Write(p[:n.room])
	return m, os.ErrDeadlineExceeded
}

// TestALineIsWholeOrNotThere: a write that was given up in the middle of a line spoils none
// that comes after it, and none is there twice.
func TestALineIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l lines
		to := &narrow{}
		var sent []string
		for range rapid.IntRange(1, 12).Draw(t, "lines") {
			line := strings.Repeat(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "of"), rapid.IntRange(0, 9).Draw(t, "long")) + "\n"
			to.room = rapid.IntRange(0, 30).Draw(t, "room")
			before := len(l.rest)
			if err := l.write(to, []byte(line)); err == nil || to.room > before {
				sent = append(sent, line) // whole, or begun
			}
		}
		to.room = 1 << 10
		require.NoError(t, l.write(to, []byte("end\n")))
		require.Equal(t, strings.Join(sent, "")+"end\n", to.got.String())
	})
}

// TestBytesOfAnotherKind: what code has sent in its session's name, as bytes of no stream, is text like
// any other, and no reason for the host to end.
func TestBytesOfAnotherKind(t *testing.T) {
	t.Parallel()
	var got []messages.Event
	c := cell{i: &Interpreter{}, emit: func(_ context.Context, e messages.Event) error {
		got = append(got, e)
		return nil
	}}
	c.written(t.Context(), "display", []byte("text"))
	require.Equal(t, []messages.Event{messages.Stream{Name: "display", Text: "text"}}, got)
}
