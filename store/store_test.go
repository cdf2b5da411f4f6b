package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/store"
)

// open opens a folder.
func open(t require.TestingT, dir string, change ...func(*store.FolderOptions)) *store.Folder {
	o := store.FolderOptions{Dir: filepath.Join(dir, "hibernated"), KeyFile: filepath.Join(dir, "key")}
	for _, c := range change {
		c(&o)
	}
	f, err := store.OpenFolder(context.Background(), o)
	require.NoError(t, err)
	return f
}

// header is that of a record whose image has sections of these sizes.
func header(name string, sections ...int64) store.Header {
	return store.Header{Name: name, Session: name, Python: "3.12.1", Platform: "linux/amd64", Made: time.Now(), Manifest: json.RawMessage(`{"a":1}`), Sections: sections}
}

var claim = store.Claim{Python: "3.12.1", Platform: "linux/amd64"}

// image is what a record of sections holds, told apart by seed.
func image(seed byte, sections ...int64) []byte {
	var all []byte
	for i, n := range sections {
		all = append(all, bytes.Repeat([]byte{seed + byte(i)}, int(n))...)
	}
	return all
}

// read returns what a record holds, and closes it.
func read(t require.TestingT, s store.Store, name string) ([]byte, error) {
	r, err := s.Get(context.Background(), name, claim)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = r.Image(context.Background(), &out)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	return out.Bytes(), err
}

// files are the regular files below a folder of the store, by their paths there.
func files(t require.TestingT, dir string, part string) []string {
	var list []string
	root := filepath.Join(dir, "hibernated", part)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			list = append(list, strings.TrimPrefix(path, root+"/"))
		}
		return err
	}))
	return list
}

func TestPutAndGet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	_, err := s.Get(t.Context(), "a", claim)
	require.ErrorIs(t, err, store.ErrNone)
	for _, sections := range [][]int64{{}, {0}, {5}, {16 << 10, 16<<10 + 1}, {100, 1 << 20, 0, 1 << 20}} {
		h, data := header("a", sections...), image('x', sections...)
		h.Owners = nil
		require.NoError(t, s.Put(t.Context(), h, bytes.NewReader(data)))
		got, err := read(t, s, "a")
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
		require.Len(t, files(t, dir, "records"), 1, "the earlier record is gone")
	}
	list, err := open(t, dir).List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "a", list[0].Name)
	require.JSONEq(t, `{"a":1}`, string(list[0].Manifest))
	require.EqualValues(t, 2<<20+100, list[0].Size())
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.Empty(t, files(t, dir, "records"))
	require.Empty(t, files(t, dir, "blobs"))
	require.Empty(t, files(t, dir, "tmp"))
	require.Empty(t, files(t, dir, "open"))
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		if path != dir {
			require.Zero(t, info.Mode().Perm()&0o077, path)
		}
		return nil
	}))
}

// TestBuffersOnce: what several records hold is on the disk once, and as long as one of
// them has it.
func TestBuffersOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	data := image('x', 10, 1<<20)
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, s.Put(t.Context(), header(name, 10, 1<<20), bytes.NewReader(data)))
	}
	bytesOf := func() (n int64) {
		for _, f := range files(t, dir, "blobs") {
			info, err := os.Stat(filepath.Join(dir, "hibernated", "blobs", f))
			require.NoError(t, err)
			n += info.Size()
		}
		return n
	}
	require.EqualValues(t, 1<<20, bytesOf())
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.NoError(t, s.Put(t.Context(), header("b", 3), strings.NewReader("abc")))
	require.EqualValues(t, 1<<20, bytesOf())
	got, err := read(t, s, "c")
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.NoError(t, s.Delete(t.Context(), "c"))
	require.Zero(t, bytesOf())
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	h := header("a", 3)
	h.Owners = []string{"me", "us"}
	require.NoError(t, s.Put(t.Context(), h, strings.NewReader("abc")))
	mine := store.Claim{Owner: "me", Python: "3.12.1", Platform: "linux/amd64"}
	for name, tt := range map[string]struct {
		claim  store.Claim
		reason store.Reason
		text   string
	}{
		"another owner":   {store.Claim{Owner: "you"}, store.ReasonOwner, "belongs to another owner"},
		"no owner":        {store.Claim{}, store.ReasonOwner, "belongs to another owner"},
		"another Python":  {store.Claim{Owner: "me", Python: "3.9.1"}, store.ReasonPython, "kept by Python 3.12.1, and this is Python 3.9.1"},
		"another machine": {store.Claim{Owner: "us", Platform: "plan9/386"}, store.ReasonPlatform, "kept on linux/amd64, and this is plan9/386"},
	} {
		_, err := s.Get(t.Context(), "a", tt.claim)
		var refused *store.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, tt.reason, refused.Reason, name)
		require.ErrorContains(t, err, tt.text, name)
	}
	r, err := s.Get(t.Context(), "a", mine)
	require.NoError(t, err)
	_, err = open(t, dir).Get(t.Context(), "a", mine)
	require.ErrorIs(t, err, store.ErrBusy, "it is open once at a time")
	require.NoError(t, r.Close())
	r, err = open(t, dir).Get(t.Context(), "a", mine)
	require.NoError(t, err)
	require.NoError(t, r.Close())

	other := open(t, dir, func(o *store.FolderOptions) { o.KeyFile = filepath.Join(dir, "another key") })
	_, err = other.Get(t.Context(), "a", mine)
	var refused *store.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, store.ReasonSeal, refused.Reason)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "short"), []byte("x"), 0o600))
	_, err = store.OpenFolder(t.Context(), store.FolderOptions{Dir: dir, KeyFile: filepath.Join(dir, "short")})
	require.ErrorContains(t, err, "holds 1 bytes, not 32")
}

// TestDamage: a record and a buffer of which any byte was changed, or the end is
// missing, are refused before anything of them is used.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	data := image('x', 10, 17<<10)
	require.NoError(t, s.Put(t.Context(), header("a", 10, 17<<10), bytes.NewReader(data)))
	paths := []string{filepath.Join("records", files(t, dir, "records")[0])}
	for _, f := range files(t, dir, "blobs") {
		if strings.HasSuffix(f, "data") {
			paths = append(paths, filepath.Join("blobs", f))
		}
	}
	require.Len(t, paths, 2)
	for _, p := range paths {
		path := filepath.Join(dir, "hibernated", p)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		step := max(len(whole)/200, 1)
		try := func(what string, damaged []byte) {
			require.NoError(t, os.WriteFile(path, damaged, 0o600))
			_, err := read(t, s, "a")
			var refused *store.RefusedError
			require.ErrorAs(t, err, &refused, "%s of %s", what, p)
		}
		for at := 0; at < len(whole); at += step {
			flipped := bytes.Clone(whole)
			flipped[at] ^= 1 << (at % 8)
			try(fmt.Sprintf("byte %d", at), flipped)
			try(fmt.Sprintf("cut at %d", at), whole[:at])
		}
		try("longer", append(bytes.Clone(whole), 0))
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
	got, err := read(t, s, "a")
	require.NoError(t, err)
	require.Equal(t, data, got)
	require.NoError(t, os.Remove(filepath.Join(dir, "hibernated", paths[1])))
	_, err = read(t, s, "a")
	require.ErrorContains(t, err, "a part of it is gone")
}

// TestAnotherName: a record that someone has put in the place of another one is refused.
func TestAnotherName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Put(t.Context(), header("a", 3), strings.NewReader("aaa")))
	a := files(t, dir, "records")[0]
	require.NoError(t, s.Put(t.Context(), header("b", 3), strings.NewReader("bbb")))
	for _, f := range files(t, dir, "records") {
		if f != a {
			root := filepath.Join(dir, "hibernated", "records")
			require.NoError(t, os.Rename(filepath.Join(root, a), filepath.Join(root, f)))
		}
	}
	_, err := s.Get(t.Context(), "b", claim)
	var refused *store.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, store.ReasonName, refused.Reason)
}

func TestQuotaAndExpiry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, func(o *store.FolderOptions) { o.MaxBytes = 3 << 20 })
	put := func(name string, seed byte, age time.Duration) error {
		h := header(name, 1<<20)
		h.Made, h.Expires = time.Now().Add(-age), time.Now().Add(time.Hour-age)
		return s.Put(t.Context(), h, bytes.NewReader(image(seed, 1<<20)))
	}
	require.NoError(t, put("a", 'a', 0))
	require.NoError(t, put("b", 'b', 0))
	err := put("c", 'c', 0)
	require.ErrorIs(t, err, store.ErrQuota)
	require.ErrorContains(t, err, "raise the quota")
	require.NoError(t, put("c", 'a', 0), "it has what another one has")
	require.NoError(t, s.Delete(t.Context(), "b"))
	require.NoError(t, put("old", 'd', 2*time.Hour))
	_, err = s.Get(t.Context(), "old", claim)
	require.ErrorIs(t, err, store.ErrNone)
	require.NoError(t, put("e", 'e', 0), "what has expired makes room")
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Empty(t, files(t, dir, "tmp"))
}

// failing is an image that cannot be read to its end.
type failing struct{ data []byte }

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > int64(len(f.data)) {
		return 0, errors.New("no")
	}
	return copy(p, f.data[off:]), nil
}

// TestFailedPut leaves the earlier record, and nothing else.
func TestFailedPut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	data := image('x', 5, 20<<10)
	require.NoError(t, s.Put(t.Context(), header("a", 5, 20<<10), bytes.NewReader(data)))
	require.Error(t, s.Put(t.Context(), header("a", 5, 20<<10, 30<<10), failing{image('y', 5, 20<<10)}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Put(ctx, header("a", 5, 20<<10), bytes.NewReader(image('z', 5, 20<<10))), context.Canceled)
	got, err := read(t, s, "a")
	require.NoError(t, err)
	require.Equal(t, data, got)
	require.Empty(t, files(t, dir, "tmp"))
	require.Len(t, files(t, dir, "blobs"), 2)
}

// TestOneKey: programs that make the key at the same time get the same.
func TestOneKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := store.OpenFolder(context.Background(), store.FolderOptions{Dir: filepath.Join(dir, "hibernated"), KeyFile: filepath.Join(dir, "key")})
			if err == nil {
				err = s.Put(context.Background(), header(fmt.Sprint(i), 20<<10), bytes.NewReader(image('x', 20<<10)))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := open(t, dir).List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 8)
}

// TestModel: any sequence of calls over several opened folders behaves as a map.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "model-")
		require.NoError(rt, err)
		stores := []*store.Folder{store.Careless(open(rt, dir)), store.Careless(open(rt, dir))}
		model := map[string][]byte{}
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
				sizes := rapid.SliceOfN(rapid.SampledFrom([]int64{0, 1, 16 << 10, 17 << 10, 40 << 10}), 0, 3).Draw(rt, "sizes")
				data := image(byte(rapid.IntRange(0, 2).Draw(rt, "seed")), sizes...)
				require.NoError(rt, rapid.SampledFrom(stores).Draw(rt, "store").Put(context.Background(), header(name, sizes...), bytes.NewReader(data)))
				model[name] = data
			},
			"delete": func(rt *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
				require.NoError(rt, rapid.SampledFrom(stores).Draw(rt, "store").Delete(context.Background(), name))
				delete(model, name)
			},
			"": func(rt *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "read")
				got, err := read(rt, rapid.SampledFrom(stores).Draw(rt, "reader"), name)
				if want, ok := model[name]; ok {
					require.NoError(rt, err)
					require.True(rt, bytes.Equal(want, got))
				} else {
					require.ErrorIs(rt, err, store.ErrNone)
				}
				if len(model) == 0 {
					require.Empty(rt, files(rt, dir, "blobs"))
				}
			},
		})
	})
}
