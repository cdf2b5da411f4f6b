package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/store"
)

// TestADamagedBufferIsNotTakenAgain: a record that is written of what another one has is
// whole, whatever became of the other's buffer, and so is the other one again.
func TestADamagedBufferIsNotTakenAgain(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(whole []byte) []byte{
		"a bit": func(whole []byte) []byte { whole[len(whole)/2] ^= 1; return whole },
		"cut":   func(whole []byte) []byte { return whole[:len(whole)/2] },
		"long":  func(whole []byte) []byte { return append(whole, whole...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, data := open(t, dir), image('x', 10, 17<<10)
			require.NoError(t, s.Put(t.Context(), header("a", 10, 17<<10), bytes.NewReader(data)))
			blob, err := filepath.Glob(filepath.Join(dir, "hibernated", "blobs", "*", "data"))
			require.NoError(t, err)
			require.Len(t, blob, 1)
			whole, err := os.ReadFile(blob[0])
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(blob[0], damage(whole), 0o600))
			require.NoError(t, s.Put(t.Context(), header("b", 10, 17<<10), bytes.NewReader(data)))
			for _, name := range []string{"b", "a"} {
				got, err := read(t, s, name)
				require.NoError(t, err, name)
				require.True(t, bytes.Equal(data, got))
			}
			require.Empty(t, files(t, dir, "tmp"))
			require.NoError(t, s.Delete(t.Context(), "a"))
			require.NoError(t, s.Delete(t.Context(), "b"))
			require.Empty(t, files(t, dir, "blobs"))
		})
	}
}

// TestAnOlderRecordIsNotTaken for the one that replaced it, when the program was killed
// before the older one was gone and the newer one was damaged since.
func TestAnOlderRecordIsNotTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	record := func() string {
		paths := files(t, dir, "records")
		require.Len(t, paths, 1)
		return filepath.Join(dir, "hibernated", "records", paths[0])
	}
	made := time.Now()
	put := func(text string, made time.Time) (path string, whole []byte) {
		h := header("a", int64(len(text)))
		h.Made = made
		require.NoError(t, s.Put(t.Context(), h, strings.NewReader(text)))
		path = record()
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		return path, whole
	}
	first, older := put("older", made)
	second, newer := put("newer", made.Add(-time.Hour)) // the clock was set back
	require.NoError(t, os.WriteFile(first, older, 0o600))
	got, err := read(t, s, "a")
	require.NoError(t, err)
	require.Equal(t, "newer", string(got))
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.WithinDuration(t, made.Add(-time.Hour), list[0].Made, 0)

	require.NoError(t, os.WriteFile(second, newer[:len(newer)-1], 0o600))
	for _, one := range []*store.Folder{s, open(t, dir)} {
		_, err = read(t, one, "a")
		var refused *store.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, store.ReasonCut, refused.Reason)
		require.ErrorContains(t, err, "an older one of the same name is there")
		list, err = one.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)
	}

	// What is older and damaged is in no one's way.
	require.NoError(t, os.WriteFile(second, newer, 0o600))
	require.NoError(t, os.WriteFile(first, older[:len(older)-1], 0o600))
	got, err = read(t, s, "a")
	require.NoError(t, err)
	require.Equal(t, "newer", string(got))
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.Empty(t, files(t, dir, "records"))
}

// TestARecordIsReadOnceForLists: a list of records of which none has changed opens none of
// them, and one that did is read again.
func TestARecordIsReadOnceForLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	names := func() (all []string) {
		list, err := s.List(t.Context())
		require.NoError(t, err)
		for _, h := range list {
			all = append(all, h.Name)
		}
		return all
	}
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, other.Put(t.Context(), header(name, 5), strings.NewReader("12345")))
	}
	require.Equal(t, []string{"a", "b", "c"}, names())
	read := store.Reads(s)
	for range 3 {
		require.Equal(t, []string{"a", "b", "c"}, names())
	}
	require.Equal(t, read, store.Reads(s))
	require.NoError(t, other.Delete(t.Context(), "a"))
	require.NoError(t, other.Put(t.Context(), header("b", 3), strings.NewReader("123")))
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []int64{3}, list[0].Sections)
	require.Equal(t, read+1, store.Reads(s))
	c, err := filepath.Glob(filepath.Join(dir, "hibernated", "records", "*", "*.rec"))
	require.NoError(t, err)
	for _, path := range c { // damage is seen, also when the size is as it was
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		whole[len(whole)/2] ^= 1
		require.NoError(t, os.WriteFile(path, whole, 0o600))
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Minute)))
	}
	require.Empty(t, names())
}

// TestTheSameBufferTwice in one record is on the disk once.
func TestTheSameBufferTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, data := open(t, dir), bytes.Repeat([]byte("x"), 80<<10)
	require.NoError(t, s.Put(t.Context(), header("a", 40<<10, 40<<10), bytes.NewReader(data)))
	got, err := read(t, s, "a")
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.Len(t, files(t, dir, "blobs"), 2)
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.Empty(t, files(t, dir, "blobs"))
}
