package eventlog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/eventlog"
)

// TestWhatWasReadStays keeps entries of the memory while others move to the file:
// a reader that is slow sees what it was given.
func TestWhatWasReadStays(t *testing.T) {
	t.Parallel()
	l := eventlog.New(eventlog.Options{Dir: t.TempDir(), Memory: 100})
	defer func() { require.NoError(t, l.Close()) }()
	add := func(n uint64) ([]byte, error) { return fmt.Appendf(nil, "entry %d", n), nil }
	for range 10 {
		require.NoError(t, l.Append(add))
	}
	entries, _, err := l.Read(0, 1000)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for range 100 {
		require.NoError(t, l.Append(add))
	}
	_, _, filed := l.Size()
	require.Positive(t, filed)
	for i, e := range entries {
		require.Equal(t, fmt.Sprintf("entry %d", i+1), string(e))
	}
}
