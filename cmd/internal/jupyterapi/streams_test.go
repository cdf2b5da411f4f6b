package jupyterapi

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPieces: what is printed shortly one after the other is one piece, and none waits long.
func TestPieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type piece struct {
			after      time.Duration
			name, text string
		}
		var got []piece
		begin := time.Now()
		s := streams{publish: func(name, text string) { got = append(got, piece{time.Since(begin), name, text}) }}
		s.add("stdout", "a\n")
		s.add("stdout", "b\n")
		time.Sleep(soon / 2)
		s.add("stdout", "c\n")
		time.Sleep(soon) // it is out
		s.add("stdout", "d\n")
		s.add("stderr", "e\n") // what came before it goes first
		time.Sleep(time.Second)
		s.add("stdout", "f\n")
		s.flush() // the cell has ended
		synctest.Wait()
		require.Equal(t, []piece{
			{soon, "stdout", "a\nb\nc\n"},
			{soon * 3 / 2, "stdout", "d\n"},
			{soon*3/2 + together, "stderr", "e\n"},
			{soon*3/2 + time.Second, "stdout", "f\n"},
		}, got)
	})
}
