package artifact_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/sinks/artifact"
)

func put(t *testing.T, s *artifact.Store, text string) *artifact.Writer {
	t.Helper()
	w, err := s.Create()
	require.NoError(t, err)
	n, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.Equal(t, len(text), n)
	require.NoError(t, w.Close())
	return w
}

func read(t *testing.T, s *artifact.Store, uri string) string {
	t.Helper()
	f, err := s.Open(uri)
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return string(b)
}

// TestNumbersOfSeveralStores: those of two that are read as one are never alike.
func TestNumbersOfSeveralStores(t *testing.T) {
	t.Parallel()
	const first = 99_999_999_000_000
	s := artifact.New(artifact.Options{Dir: t.TempDir(), First: first})
	require.Equal(t, first, put(t, s, "one").ID())
	require.Equal(t, "artifact://99999999000001", put(t, s, "two").URI())
	require.Equal(t, "two", read(t, s, "artifact://99999999000001"))
	again := artifact.New(artifact.Options{Dir: s.Dir(), First: first - 1_000_000})
	require.Equal(t, first+2, put(t, again, "three").ID(), "one folder counts on")
}

func TestNumbersGoOn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a[b]*", "artifacts")
	s := artifact.New(artifact.Options{Dir: dir})
	require.NoDirExists(t, dir, "nothing is made before it is needed")
	require.Equal(t, "artifact://0", put(t, s, "zero").URI())
	require.Equal(t, "artifact://1", put(t, s, "one").URI())

	for _, name := range []string{"7.bash.log", "x.python.log", "9.log", "11.python.txt", "012.python.log", "1000000000000000.python.log"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "20.python.log"), 0o700))

	again := artifact.New(artifact.Options{Dir: dir, Tool: "other"})
	w := put(t, again, "twenty-one")
	require.Equal(t, 21, w.ID())
	require.Equal(t, filepath.Join(dir, "21.other.log"), w.Path())
	require.Equal(t, 22, put(t, s, "next").ID(), "numbers between are left free")
	list, err := s.List()
	require.NoError(t, err)
	var ids []int
	for _, i := range list {
		ids = append(ids, i.ID)
	}
	require.Equal(t, []int{0, 1, 7, 21, 22}, ids)
	require.Equal(t, "next", read(t, s, "artifact://22"))
	require.EqualValues(t, 10, list[3].Bytes)
}

func TestModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Log("windows keeps no such modes")
		return
	}
	dir := filepath.Join(t.TempDir(), "artifacts")
	w := put(t, artifact.New(artifact.Options{Dir: dir}), "x")
	for path, want := range map[string]os.FileMode{dir: 0o700, w.Path(): 0o600} {
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, st.Mode().Perm(), path)
	}
}

func TestErrorsAreSentences(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "artifacts")
	s := artifact.New(artifact.Options{Dir: dir})
	resolve := func(uri string) error { _, err := s.Resolve(uri); return err }

	_, err := artifact.New(artifact.Options{}).Resolve("artifact://0")
	require.ErrorIs(t, err, artifact.ErrNoStore)
	require.EqualError(t, err, "No session - artifacts unavailable")
	_, err = artifact.New(artifact.Options{}).Create()
	require.ErrorIs(t, err, artifact.ErrNoStore)
	var none *artifact.Store
	_, err = none.List()
	require.ErrorIs(t, err, artifact.ErrNoStore)

	require.EqualError(t, resolve("artifact://0"), "No artifacts directory found")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.EqualError(t, resolve("artifact://0"), "Artifact 0 not found. Available: none")
	put(t, s, "")
	put(t, s, "")
	require.EqualError(t, resolve("artifact://5"), "Artifact 5 not found. Available: 0, 1")
	require.ErrorIs(t, resolve("artifact://5"), artifact.ErrNotFound)
	require.EqualError(t, resolve("artifact://"), "artifact:// URL requires a numeric ID: artifact://0")
	require.EqualError(t, resolve("artifact://x"), "artifact:// ID must be numeric, got: x")
	require.EqualError(t, resolve("artifact://../0"), "artifact:// ID must be numeric, got: ../0")
	require.ErrorIs(t, resolve("artifact://-1"), artifact.ErrBadID)
	require.ErrorIs(t, resolve("99999999999999999999"), artifact.ErrBadID)
	for _, uri := range []string{"artifact://1", "artifact://1/", " 1 "} {
		require.NoError(t, resolve(uri), uri)
	}

	many := &artifact.NotFoundError{ID: 1000}
	for i := range 60 {
		many.Available = append(many.Available, i)
	}
	require.True(t, strings.HasPrefix(many.Error(), "Artifact 1000 not found. Available: …, 10, 11, "), many.Error())
}

func TestCap(t *testing.T) {
	t.Parallel()
	s := artifact.New(artifact.Options{Dir: t.TempDir(), MaxBytes: 10})
	require.Equal(t, "0123456789", read(t, s, put(t, s, "0123456789").URI()), "what fits has no marker")
	w, err := s.Create()
	require.NoError(t, err)
	for range 4 {
		n, err := w.Write([]byte("0123456"))
		require.NoError(t, err)
		require.Equal(t, 7, n)
	}
	require.NoError(t, w.Close())
	require.NoError(t, w.Close(), "closing again does nothing")
	require.Equal(t, "0123456012\n[artifact cut: the first 10 of 28 bytes were kept]\n", read(t, s, w.URI()))

	all := artifact.New(artifact.Options{Dir: t.TempDir(), MaxBytes: -1})
	require.Equal(t, "0123456789", read(t, all, put(t, all, "0123456789").URI()))
}

func TestFlushMakesItReadable(t *testing.T) {
	t.Parallel()
	s := artifact.New(artifact.Options{Dir: t.TempDir()})
	w, err := s.Create()
	require.NoError(t, err)
	_, err = w.Write([]byte("so far"))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	require.Equal(t, "so far", read(t, s, w.URI()))
	require.NoError(t, w.Close())
}

func TestWriteErrorIsKept(t *testing.T) {
	t.Parallel()
	s := artifact.New(artifact.Options{Dir: t.TempDir()})
	w, err := s.Create()
	require.NoError(t, err)
	require.NoError(t, w.CloseFile()) // as if the disk was gone
	_, err = w.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, os.ErrClosed)
	require.ErrorContains(t, err, "write artifact 0")
	_, again := w.Write([]byte("x"))
	require.Equal(t, err, again)
	require.Equal(t, err, w.Close())
}

func TestCreateFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := artifact.New(artifact.Options{Dir: filepath.Join(file, "x")}).Create()
	require.ErrorContains(t, err, "make artifacts directory")
}

func TestReadLines(t *testing.T) {
	t.Parallel()
	s := artifact.New(artifact.Options{Dir: t.TempDir()})
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	text.WriteString(strings.Repeat("é", 50<<10) + "\nlast")
	uri := put(t, s, text.String()).URI()
	for name, tc := range map[string]struct {
		r    artifact.Range
		want artifact.Part
	}{
		"two":            {artifact.Range{First: 9, Last: 10}, artifact.Part{Text: []byte("line 9\nline 10\n"), First: 9, Last: 10}},
		"from the start": {artifact.Range{Last: 1}, artifact.Part{Text: []byte("line 1\n"), First: 1, Last: 1}},
		"to the end":     {artifact.Range{First: 102}, artifact.Part{Text: []byte("last"), First: 102, Last: 102}},
		"past the end":   {artifact.Range{First: 103, Last: 200}, artifact.Part{}},
		"too much":       {artifact.Range{First: 2, MaxBytes: 15}, artifact.Part{Text: []byte("line 2\nline 3\n"), First: 2, Last: 3, More: true}},
		"before a giant": {artifact.Range{First: 100}, artifact.Part{Text: []byte("line 100\n"), First: 100, Last: 100, More: true}},
		"a giant":        {artifact.Range{First: 101, Last: 101, MaxBytes: 5}, artifact.Part{Text: []byte("éé"), First: 101, Last: 101, More: true}},
		"a giant, whole": {artifact.Range{First: 101, MaxBytes: 1 << 20}, artifact.Part{Text: []byte(strings.Repeat("é", 50<<10) + "\nlast"), First: 101, Last: 102}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part, err := s.ReadLines(uri, tc.r)
			require.NoError(t, err)
			require.EqualValues(t, text.Len(), part.Size)
			require.Equal(t, string(tc.want.Text), text.String()[part.Begin:part.End])
			part.Begin, part.End, part.Size = 0, 0, 0
			require.Empty(t, cmp.Diff(tc.want, part))
		})
	}
	for _, r := range []artifact.Range{{First: -1}, {First: 3, Last: 2}} {
		_, err := s.ReadLines(uri, r)
		require.ErrorIs(t, err, artifact.ErrBadRange)
	}
	_, err := s.ReadLines("artifact://9", artifact.Range{})
	require.ErrorIs(t, err, artifact.ErrNotFound)
}

func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	s := artifact.New(artifact.Options{Dir: dir, MaxAge: 48 * time.Hour, MaxTotal: 20, Now: func() time.Time { return now }})
	removed, err := artifact.New(artifact.Options{Dir: filepath.Join(dir, "none"), MaxAge: 1}).Sweep()
	require.NoError(t, err)
	require.Empty(t, removed)

	writing, err := s.Create()
	require.NoError(t, err)
	for i, age := range []time.Duration{72 * time.Hour, 24 * time.Hour, 10 * time.Hour, 72 * time.Hour} {
		path := filepath.Join(dir, fmt.Sprintf("%d.python.log", i+1))
		require.NoError(t, os.WriteFile(path, make([]byte, 15), 0o600))
		require.NoError(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	require.NoError(t, os.Chtimes(writing.Path(), now.Add(-100*time.Hour), now.Add(-100*time.Hour)))
	removed, err = s.Sweep()
	require.NoError(t, err)
	var ids []int
	for _, i := range removed {
		ids = append(ids, i.ID)
	}
	require.Equal(t, []int{1, 2, 3}, ids, "too old; then the oldest until the rest fits; not the newest, not one in work")
	require.NoError(t, writing.Close())
	require.Equal(t, 5, put(t, s, "").ID(), "no number is given again")
}

func TestClosingSweepsNowAndThen(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := artifact.New(artifact.Options{Dir: t.TempDir(), MaxTotal: 1, Now: func() time.Time { return now }})
	put(t, s, "first")
	put(t, s, "second")
	require.Equal(t, "first", read(t, s, "0"), "it looked a moment ago")
	now = now.Add(time.Hour)
	put(t, s, "third")
	_, err := s.Resolve("0")
	require.ErrorIs(t, err, artifact.ErrNotFound)
}

// TestManyAtOnce: several stores on one directory, as several hosts would have,
// each used by several goroutines.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const stores, users, each = 4, 4, 10
	var wg sync.WaitGroup
	var mu sync.Mutex
	texts := make(map[string]string)
	for range stores {
		s := artifact.New(artifact.Options{Dir: dir})
		for range users {
			wg.Go(func() {
				for range each {
					w, err := s.Create()
					if err != nil {
						t.Error(err)
						return
					}
					text := strings.Repeat(w.URI()+" ", 100)
					_, _ = io.WriteString(w, text)
					if err := w.Close(); err != nil {
						t.Error(err)
					}
					mu.Lock()
					texts[w.URI()] += text
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	require.Len(t, texts, stores*users*each, "no number is given twice")
	s := artifact.New(artifact.Options{Dir: dir})
	for uri, text := range texts {
		require.Equal(t, text, read(t, s, uri))
	}
}

func FuzzParseURI(f *testing.F) {
	for _, s := range []string{"artifact://0", "artifact://", "12", "artifact://x", "artifact://99999999999999999999", " artifact://3/ "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := artifact.ParseURI(s)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, id, 0)
		again, err := artifact.ParseURI(artifact.URI(id))
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}

func TestCopyLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	text := "one\ntwo\n" + long + "\nfour"
	for want, r := range map[string][2]int64{
		text: {0, 0}, "one\n": {1, 1}, "two\n" + long + "\n": {2, 3}, "four": {4, 9}, "": {5, 0}, "one\ntwo\n": {0, 2},
	} {
		var b strings.Builder
		require.NoError(t, artifact.CopyLines(&b, strings.NewReader(text), r[0], r[1]))
		require.Equal(t, want, b.String())
	}
	require.ErrorIs(t, artifact.CopyLines(io.Discard, strings.NewReader(text), 3, 2), artifact.ErrBadRange)
}

func TestKeep(t *testing.T) {
	t.Parallel()
	s := artifact.New(artifact.Options{Dir: t.TempDir()})
	put(t, s, "zero")
	info, err := s.Keep("figure", "svg", []byte("<svg/>"))
	require.NoError(t, err)
	require.Equal(t, "artifact://1", info.URI())
	require.Equal(t, "1.figure.svg", filepath.Base(info.Path))
	require.Equal(t, "<svg/>", read(t, s, info.URI()))
	require.Equal(t, "artifact://2", put(t, s, "two").URI())
	_, err = artifact.New(artifact.Options{}).Keep("figure", "svg", nil)
	require.ErrorIs(t, err, artifact.ErrNoStore)
}
