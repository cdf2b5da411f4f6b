package eventlog_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/eventlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func entry(text string) func(uint64) ([]byte, error) {
	return func(n uint64) ([]byte, error) { return fmt.Appendf(nil, "%d %s", n, text), nil }
}

// TestEveryReaderSeesAllOnce lets readers come and go at any cursor while
// entries of all sizes are appended.
func TestEveryReaderSeesAllOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		l := eventlog.New(eventlog.Options{Dir: dir, Memory: rapid.IntRange(1, 300).Draw(t, "memory")})
		defer func() { require.NoError(t, l.Close()) }()
		var want [][]byte
		cursors := make([]uint64, 3)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			for range rapid.IntRange(0, 20).Draw(t, "more") {
				text := string(bytes.Repeat([]byte("x"), rapid.IntRange(0, 80).Draw(t, "size")))
				require.NoError(t, l.Append(entry(text)))
				want = append(want, fmt.Appendf(nil, "%d %s", len(want)+1, text))
			}
			who := rapid.IntRange(0, len(cursors)-1).Draw(t, "who")
			got, ended, err := l.Read(cursors[who], rapid.IntRange(0, 400).Draw(t, "most"))
			require.NoError(t, err)
			require.False(t, ended)
			require.Equal(t, len(want) > int(cursors[who]), len(got) > 0)
			for _, e := range got {
				require.Equal(t, string(want[cursors[who]]), string(e))
				cursors[who]++
			}
		}
		require.NoError(t, l.Finish(entry("end")))
		want = append(want, fmt.Appendf(nil, "%d end", len(want)+1))
		for _, at := range cursors {
			for ended := false; !ended; {
				var got [][]byte
				var err error
				got, ended, err = l.Read(at, 100)
				require.NoError(t, err)
				for _, e := range got {
					require.Equal(t, string(want[at]), string(e))
					at++
				}
			}
			require.Equal(t, len(want), int(at))
		}
		require.ErrorIs(t, l.Append(entry("late")), eventlog.ErrEnded)
	})
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := eventlog.New(eventlog.Options{Dir: dir, Memory: 10, Max: 30})
	for range 3 {
		require.NoError(t, l.Append(entry("12345678")))
	}
	require.ErrorIs(t, l.Append(entry("9")), eventlog.ErrFull)
	require.Error(t, l.Append(entry("\n")))
	_, _, err := l.Read(4, 1)
	require.ErrorIs(t, err, eventlog.ErrAhead)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	if info, err := files[0].Info(); runtime.GOOS != "windows" {
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	require.NoError(t, l.Finish(entry("the end, which is long and has to be there")))
	n, bytes, filed := l.Size()
	require.Equal(t, uint64(4), n)
	require.Positive(t, filed)
	require.Greater(t, bytes, int64(30))
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, _, err = l.Read(0, 1)
	require.ErrorIs(t, err, eventlog.ErrEnded)
}

// TestTheDiskIsGone keeps what is there, and takes nothing that it could not keep.
func TestTheDiskIsGone(t *testing.T) {
	t.Parallel()
	l := eventlog.New(eventlog.Options{Dir: t.TempDir() + "/none", Memory: 5})
	require.NoError(t, l.Append(entry("a")))
	require.NoError(t, l.Append(entry("bcd")))
	require.ErrorIs(t, l.Append(entry("e")), os.ErrNotExist)
	require.NoError(t, l.Finish(entry("end")))
	got, ended, err := l.Read(0, 100)
	require.NoError(t, err)
	require.True(t, ended)
	require.Len(t, got, 3)
	require.NoError(t, l.Close())
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := eventlog.New(eventlog.Options{})
		woken := make(chan error, 3)
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go func() { woken <- l.Wait(t.Context(), 0) }()
		}
		go func() { woken <- l.Wait(ctx, 5) }()
		synctest.Wait()
		require.Empty(t, woken)
		require.NoError(t, l.Append(entry("x")))
		require.NoError(t, <-woken)
		require.NoError(t, <-woken)
		cancel()
		require.ErrorIs(t, <-woken, context.Canceled)
		go func() { woken <- l.Wait(t.Context(), 1) }()
		synctest.Wait()
		require.NoError(t, l.Finish(entry("y")))
		require.NoError(t, <-woken)
		require.NoError(t, l.Close())
	})
}
