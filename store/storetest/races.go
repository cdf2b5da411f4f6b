package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/store"
)

// failing is an image that cannot be read to its end.
type failing struct{ data []byte }

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > int64(len(f.data)) {
		return 0, errors.New("no")
	}
	return copy(p, f.data[off:]), nil
}

// failedPut leaves the earlier record, and no other buffer than its own.
func failedPut(t *testing.T, p Place) {
	s := p.Open(t, Options{})
	data := put(t, s, "a", 'x', 5, 20<<10)
	require.Error(t, s.Put(t.Context(), header("a", 5, 20<<10, 30<<10), failing{image('y', 5, 20<<10)}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Put(ctx, header("a", 5, 20<<10), bytes.NewReader(image('z', 5, 20<<10))), context.Canceled)
	holds(t, s, "a", data)
	require.Len(t, p.Buffers(t), 1)
	require.Len(t, p.Records(t), 1)
}

// moving is an image that is another one each time that its beginning is read.
type moving struct{ at atomic.Int32 }

func (m *moving) ReadAt(p []byte, off int64) (int, error) {
	if off == 0 {
		m.at.Add(1)
	}
	copy(p, bytes.Repeat([]byte{byte(m.at.Load())}, len(p)))
	return len(p), nil
}

// movingImage: an image that changes while it is kept is not.
func movingImage(t *testing.T, p Place) {
	s := p.Open(t, Options{})
	require.ErrorContains(t, s.Put(t.Context(), header("a", 64<<10), &moving{}), "the image changed while it was read")
	_, err := read(s, "a")
	require.ErrorIs(t, err, store.ErrNone)
	require.Empty(t, p.Buffers(t))
}

// manyAtOnce: hosts that write records of the same buffer at once all have theirs.
func manyAtOnce(t *testing.T, p Place) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := p.Open(t, Options{})
			if err := s.Put(context.Background(), header(fmt.Sprint(i), 20<<10), bytes.NewReader(image('x', 20<<10))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := p.Open(t, Options{})
	require.Len(t, names(t, s), 8)
	for i := range 8 {
		holds(t, s, fmt.Sprint(i), image('x', 20<<10))
	}
}

// oneNameAtOnce: of hosts that write one name at once, and read and drop it, each reads what
// was written, as a whole, and the last of them decides.
func oneNameAtOnce(t *testing.T, p Place) {
	if p.Unarbitrated {
		return
	}
	var wg sync.WaitGroup
	for i := range byte(4) {
		wg.Go(func() {
			s := p.Open(t, Options{})
			for round := range byte(6) { // of which none has a buffer of another one
				if err := s.Put(context.Background(), header("a", 10, 20<<10), bytes.NewReader(image(2*(6*i+round), 10, 20<<10))); err != nil {
					t.Error(err)
				}
				got, err := read(s, "a")
				switch {
				case errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrNone):
				case err != nil:
					var r *store.RefusedError
					if !errors.As(err, &r) || r.Reason != store.ReasonCut { // it was replaced while it was open
						t.Error(err)
					}
				case len(got) != 10+20<<10 || !bytes.Equal(got, image(got[0], 10, 20<<10)):
					t.Error("it is none of those that were written")
				}
				if i == 0 {
					if err := s.Delete(context.Background(), "a"); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	s := p.Open(t, Options{})
	holds(t, s, "a", put(t, s, "a", 'z', 10, 20<<10))
	require.Len(t, p.Records(t), 1)
	require.Len(t, p.Buffers(t), 1)
}

// deletedWhileOpen: who has a record open may drop it, and then nobody gets it.
func deletedWhileOpen(t *testing.T, p Place) {
	one, two := p.Open(t, Options{}), p.Open(t, Options{})
	put(t, one, "a", 'x', 3)
	r, err := one.Get(t.Context(), "a", claim)
	require.NoError(t, err)
	require.NoError(t, r.Image(t.Context(), io.Discard))
	require.NoError(t, one.Delete(t.Context(), "a"))
	_, err = two.Get(t.Context(), "a", claim)
	require.ErrorIs(t, err, store.ErrNone)
	require.NoError(t, r.Close())
	holds(t, two, "a", put(t, two, "a", 'y', 3))
}

// model: any sequence of calls over two opened stores behaves as a map.
func model(t *testing.T, make func(t require.TestingT, dir string) Place) {
	root := t.TempDir()
	var n atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		dir := filepath.Join(root, fmt.Sprint(n.Add(1)))
		require.NoError(rt, os.MkdirAll(dir, 0o700))
		p := make(rt, dir)
		stores := []store.Store{p.Open(rt, Options{}), p.Open(rt, Options{})}
		kept := map[string][]byte{}
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
				sizes := rapid.SliceOfN(rapid.SampledFrom([]int64{0, 1, 16 << 10, 17 << 10, 40 << 10}), 0, 3).Draw(rt, "sizes")
				kept[name] = put(rt, rapid.SampledFrom(stores).Draw(rt, "store"), name, byte(rapid.IntRange(0, 2).Draw(rt, "seed")), sizes...)
			},
			"delete": func(rt *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
				require.NoError(rt, rapid.SampledFrom(stores).Draw(rt, "store").Delete(context.Background(), name))
				delete(kept, name)
			},
			"": func(rt *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "read")
				got, err := read(rapid.SampledFrom(stores).Draw(rt, "reader"), name)
				if want, ok := kept[name]; ok {
					require.NoError(rt, err)
					require.True(rt, bytes.Equal(want, got))
				} else {
					require.ErrorIs(rt, err, store.ErrNone)
				}
				if len(kept) == 0 {
					require.Empty(rt, p.Buffers(rt))
				}
			},
		})
	})
}
