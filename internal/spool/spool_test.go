package spool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/spool"
)

// newSpool returns a spool with tiny bounds whose files go to the test's own
// directory.
func newSpool(t *testing.T, memory, segment int64) (*spool.Spool, string) {
	t.Helper()
	dir := t.TempDir()
	s := spool.New(spool.Options{Memory: memory, Dir: dir, Segment: segment})
	t.Cleanup(s.Close)
	return s, dir
}

func get(t *testing.T, s *spool.Spool) string {
	t.Helper()
	rec, err := s.Get(t.Context())
	require.NoError(t, err)
	return string(rec)
}

func TestOrderAcrossMemoryAndDisk(t *testing.T) {
	t.Parallel()
	s, _ := newSpool(t, 200, 64)
	const n = 500
	for i := range n {
		require.NoError(t, s.Put(fmt.Appendf(nil, "record %d", i)))
	}
	st := s.Stats()
	require.EqualValues(t, n, st.PendingRecords)
	require.Equal(t, st.Bytes, st.PendingBytes)
	require.Positive(t, st.SpilledRecords)
	require.Less(t, st.SpilledRecords, int64(n), "the first records stay in memory")

	s.CloseWrite()
	require.ErrorIs(t, s.Put([]byte("late")), spool.ErrClosed)
	for i := range n {
		require.Equal(t, fmt.Sprintf("record %d", i), get(t, s))
	}
	_, err := s.Get(t.Context())
	require.ErrorIs(t, err, io.EOF)
	_, err = s.Get(t.Context())
	require.ErrorIs(t, err, io.EOF, "the end stays the end")
	require.Zero(t, s.Stats().PendingBytes)
}

func TestReturnsToMemoryWhenDiskIsDrained(t *testing.T) {
	t.Parallel()
	s, _ := newSpool(t, 100, 1<<20)
	for range 2 {
		for i := range 10 {
			require.NoError(t, s.Put([]byte{byte(i), 1, 2, 3}))
		}
		for i := range 10 {
			require.Equal(t, string([]byte{byte(i), 1, 2, 3}), get(t, s))
		}
	}
	before := s.Stats().SpilledRecords
	require.NoError(t, s.Put([]byte("small")))
	require.Equal(t, before, s.Stats().SpilledRecords)
}

func TestRecordLargerThanMemoryAndEmptyRecord(t *testing.T) {
	t.Parallel()
	s, _ := newSpool(t, 100, 1000)
	big := bytes.Repeat([]byte("x"), 300_000)
	require.NoError(t, s.Put(big))
	require.NoError(t, s.Put(nil))
	require.NoError(t, s.Put([]byte("z")))
	require.Equal(t, string(big), get(t, s))
	require.Empty(t, get(t, s))
	require.Equal(t, "z", get(t, s))
}

func TestGetWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := spool.New(spool.Options{})
		defer s.Close()
		got := make(chan string)
		go func() {
			rec, err := s.Get(t.Context())
			got <- fmt.Sprint(string(rec), err)
		}()
		synctest.Wait()
		require.NoError(t, s.Put([]byte("a")))
		require.Equal(t, "a<nil>", <-got)

		gone := errors.New("caller left")
		ctx, cancel := context.WithCancelCause(t.Context())
		errs := make(chan error)
		go func() {
			_, err := s.Get(ctx)
			errs <- err
		}()
		synctest.Wait()
		cancel(gone)
		require.ErrorIs(t, <-errs, gone)

		go func() {
			_, err := s.Get(t.Context())
			errs <- err
		}()
		synctest.Wait()
		s.CloseWrite()
		require.ErrorIs(t, <-errs, io.EOF)
		s.Close()
		_, err := s.Get(t.Context())
		require.ErrorIs(t, err, spool.ErrClosed)
	})
}

func TestCloseWakesGet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := spool.New(spool.Options{})
		errs := make(chan error)
		go func() {
			_, err := s.Get(t.Context())
			errs <- err
		}()
		synctest.Wait()
		s.Close()
		require.ErrorIs(t, <-errs, spool.ErrClosed)
		require.ErrorIs(t, s.Put(nil), spool.ErrClosed)
		s.Close()
	})
}

func TestDiskFailureIsToldAndEarlierRecordsStay(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there")
	s := spool.New(spool.Options{Memory: 60, Dir: dir})
	defer s.Close()
	require.NoError(t, s.Put([]byte("first")))
	err := s.Put([]byte("second"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.EqualValues(t, 1, s.Stats().FailedRecords)
	require.Equal(t, "first", get(t, s))

	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, s.Put([]byte("third")))
	require.NoError(t, s.Put([]byte("fourth")))
	require.Equal(t, "third", get(t, s))
	require.Equal(t, "fourth", get(t, s))
}

func TestCloseLeavesNoFile(t *testing.T) {
	t.Parallel()
	s, dir := newSpool(t, 1, 10)
	for range 20 {
		require.NoError(t, s.Put([]byte("0123456789")))
	}
	get(t, s)
	s.Close()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// The producer and the consumer run at once, with bounds so small that every
// path between memory and disk is taken many times.
func TestConcurrentFlow(t *testing.T) {
	t.Parallel()
	s, _ := newSpool(t, 500, 2000)
	const n = 20_000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			if err := s.Put(fmt.Append(nil, i)); err != nil {
				t.Errorf("put %d: %v", i, err)
				return
			}
		}
		s.CloseWrite()
	})
	for i := range n {
		require.Equal(t, fmt.Sprint(i), get(t, s))
	}
	_, err := s.Get(t.Context())
	require.ErrorIs(t, err, io.EOF)
	wg.Wait()
	require.Zero(t, s.Stats().PendingBytes)
}

// CloseWrite comes from another goroutine than Put: a record whose Put
// succeeded must come out.
func TestCloseWriteRacesPut(t *testing.T) {
	t.Parallel()
	for range 200 {
		s := spool.New(spool.Options{Memory: 1, Dir: t.TempDir()})
		put := make(chan error, 1)
		go func() { put <- s.Put([]byte("x")) }()
		go s.CloseWrite()
		rec, err := s.Get(t.Context())
		if perr := <-put; perr == nil {
			require.NoError(t, err)
			require.Equal(t, "x", string(rec))
		} else {
			require.ErrorIs(t, perr, spool.ErrClosed)
			require.ErrorIs(t, err, io.EOF)
		}
		s.Close()
	}
}

// The spool behaves as a slice does, whatever its bounds are.
func TestModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		s := spool.New(spool.Options{
			Memory:  rapid.Int64Range(1, 400).Draw(rt, "memory"),
			Segment: rapid.Int64Range(1, 300).Draw(rt, "segment"),
			Dir:     dir,
		})
		defer s.Close()
		var model [][]byte
		ended := false
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				rec := rapid.SliceOfN(rapid.Byte(), 0, 120).Draw(rt, "rec")
				err := s.Put(append([]byte{}, rec...))
				if ended {
					require.ErrorIs(rt, err, spool.ErrClosed)
					return
				}
				require.NoError(rt, err)
				model = append(model, rec)
			},
			"get": func(rt *rapid.T) {
				if len(model) == 0 && !ended {
					rt.Skip("would wait")
				}
				rec, err := s.Get(context.Background())
				if len(model) == 0 {
					require.ErrorIs(rt, err, io.EOF)
					return
				}
				require.NoError(rt, err)
				require.True(rt, bytes.Equal(model[0], rec))
				model = model[1:]
			},
			"end": func(rt *rapid.T) {
				if len(model) < 5 {
					rt.Skip("too early")
				}
				s.CloseWrite()
				ended = true
			},
			"": func(rt *rapid.T) {
				st := s.Stats()
				require.EqualValues(rt, len(model), st.PendingRecords)
				n := 0
				for _, r := range model {
					n += len(r)
				}
				require.EqualValues(rt, n, st.PendingBytes)
			},
		})
	})
}

func BenchmarkThroughMemory(b *testing.B) {
	s := spool.New(spool.Options{})
	defer s.Close()
	rec := make([]byte, 200)
	for b.Loop() {
		if s.Put(rec) != nil {
			b.Fatal("put failed")
		}
		if _, err := s.Get(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkThroughDisk(b *testing.B) {
	s := spool.New(spool.Options{Memory: 1, Dir: b.TempDir()})
	defer s.Close()
	rec := make([]byte, 200)
	for b.Loop() {
		if s.Put(rec) != nil {
			b.Fatal("put failed")
		}
		if _, err := s.Get(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
