package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/store"
)

func putAndGet(t *testing.T, p Place) {
	s := p.Open(t, Options{})
	_, err := s.Get(t.Context(), "a", claim)
	require.ErrorIs(t, err, store.ErrNone)
	require.Error(t, s.Put(t.Context(), header("", 1), strings.NewReader("x")), "a record needs a name")
	for _, sections := range [][]int64{{}, {0}, {5}, {16 << 10, 16<<10 + 1}, {100, 1 << 20, 0, 1 << 20}} {
		holds(t, s, "a", put(t, s, "a", 'x', sections...))
		require.Len(t, p.Records(t), 1, "the earlier record is gone")
	}
	list, err := p.Open(t, Options{}).List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "a", list[0].Name)
	require.JSONEq(t, `{"a":1}`, string(list[0].Manifest))
	require.EqualValues(t, 2<<20+100, list[0].Size())
	require.False(t, list[0].Expires.IsZero(), "it is not kept for ever")
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.NoError(t, s.Delete(t.Context(), "a"))
	_, err = s.Get(t.Context(), "a", claim)
	require.ErrorIs(t, err, store.ErrNone)
	require.Empty(t, p.Records(t))
	holds(t, s, "a", put(t, s, "a", 'z', 3))
}

// buffersOnce: what several records hold is there once, and as long as one of them has it.
func buffersOnce(t *testing.T, p Place) {
	s := p.Open(t, Options{})
	var data []byte
	for _, name := range []string{"a", "b", "c"} {
		data = put(t, s, name, 'x', 10, 1<<20)
	}
	require.Len(t, p.Buffers(t), 1)
	require.NoError(t, s.Delete(t.Context(), "a"))
	put(t, s, "b", 'y', 3)
	require.Len(t, p.Buffers(t), 1)
	holds(t, s, "c", data)
	require.NoError(t, s.Delete(t.Context(), "c"))
	require.Empty(t, p.Buffers(t))
}

// theSameTwice: a buffer that one record has twice is there once.
func theSameTwice(t *testing.T, p Place) {
	s, data := p.Open(t, Options{}), bytes.Repeat([]byte("x"), 80<<10)
	require.NoError(t, s.Put(t.Context(), header("a", 40<<10, 40<<10), bytes.NewReader(data)))
	holds(t, s, "a", data)
	require.Len(t, p.Buffers(t), 1)
}

func refusals(t *testing.T, p Place) {
	s := p.Open(t, Options{})
	h := header("a", 3)
	h.Owners = []string{"me", "us"}
	require.NoError(t, s.Put(t.Context(), h, strings.NewReader("abc")))
	mine := store.Claim{Owner: "me", Python: "3.12.1", Platform: "linux/amd64"}
	for name, tt := range map[string]struct {
		claim  store.Claim
		reason store.Reason
	}{
		"another owner":   {store.Claim{Owner: "you"}, store.ReasonOwner},
		"no owner":        {store.Claim{}, store.ReasonOwner},
		"another Python":  {store.Claim{Owner: "me", Python: "3.9.1"}, store.ReasonPython},
		"another machine": {store.Claim{Owner: "us", Platform: "plan9/386"}, store.ReasonPlatform},
	} {
		_, err := s.Get(t.Context(), "a", tt.claim)
		refused(t, err, tt.reason, name)
	}
	_, err := p.Open(t, Options{AnotherKey: true}).Get(t.Context(), "a", mine)
	refused(t, err, store.ReasonSeal)
	r, err := s.Get(t.Context(), "a", mine)
	require.NoError(t, err, "it stays, and none of them has it open")
	require.NoError(t, r.Close())
}

// openOnce: of all who want a record one has it, until it is closed.
func openOnce(t *testing.T, p Place) {
	one, two := p.Open(t, Options{}), p.Open(t, Options{})
	put(t, one, "a", 'x', 3)
	put(t, one, "b", 'y', 3)
	for _, s := range []store.Store{one, two} {
		r, err := s.Get(t.Context(), "a", claim)
		require.NoError(t, err)
		for _, other := range []store.Store{one, two} {
			_, err = other.Get(t.Context(), "a", claim)
			require.ErrorIs(t, err, store.ErrBusy)
		}
		b, err := two.Get(t.Context(), "b", claim)
		require.NoError(t, err, "another one")
		require.NoError(t, b.Close())
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
	}
}

// damage: a record and a buffer of which any byte was changed, or the end is missing, are
// refused before anything of them is used.
func damage(t *testing.T, p Place) {
	s := p.Open(t, Options{})
	data := put(t, s, "a", 'x', 10, 17<<10)
	objects := append(p.Records(t), p.Buffers(t)...)
	require.Len(t, objects, 2)
	for _, object := range objects {
		whole := p.Read(t, object)
		try := func(what string, damaged []byte) {
			p.Write(t, object, damaged)
			_, err := read(s, "a")
			var r *store.RefusedError
			require.ErrorAs(t, err, &r, "%s of %s", what, object)
		}
		for at := 0; at < len(whole); at += max(len(whole)/100, 1) {
			flipped := bytes.Clone(whole)
			flipped[at] ^= 1 << (at % 8)
			try(fmt.Sprintf("byte %d", at), flipped)
			try(fmt.Sprintf("cut at %d", at), whole[:at])
		}
		try("longer", append(bytes.Clone(whole), 0))
		p.Write(t, object, whole)
	}
	holds(t, s, "a", data)
	p.Remove(t, objects[1])
	_, err := read(s, "a")
	refused(t, err, store.ReasonCut)
	require.Equal(t, []string{"a"}, names(t, s), "it stays")
}

// damagedBuffer: a record that is written of what another one has is whole, whatever became
// of the other's buffer, and so is the other one again.
func damagedBuffer(t *testing.T, p Place) {
	s := p.Open(t, Options{})
	for name, change := range map[string]func(whole []byte) []byte{
		"a bit": func(whole []byte) []byte { whole[len(whole)/2] ^= 1; return whole },
		"cut":   func(whole []byte) []byte { return whole[:len(whole)/2] },
		"long":  func(whole []byte) []byte { return append(whole, whole...) },
	} {
		data := put(t, s, "a", 'x', 10, 17<<10)
		buffer := p.Buffers(t)
		require.Len(t, buffer, 1)
		p.Write(t, buffer[0], change(p.Read(t, buffer[0])))
		put(t, s, "b", 'x', 10, 17<<10)
		holds(t, s, "b", data)
		holds(t, s, "a", data)
		require.Len(t, p.Buffers(t), 1, name)
	}
}

// anotherName: a record that someone has put in the place of another one is refused.
func anotherName(t *testing.T, p Place) {
	s := p.Open(t, Options{})
	put(t, s, "a", 'a', 3)
	a := p.Records(t)
	put(t, s, "b", 'b', 3)
	for _, object := range p.Records(t) {
		if object != a[0] {
			p.Write(t, object, p.Read(t, a[0]))
		}
	}
	_, err := read(s, "b")
	refused(t, err, store.ReasonName)
}

// olderRecord: it isn't taken for the one that replaced it, when a program was killed before
// the older one was gone and the newer one was damaged since.
func olderRecord(t *testing.T, p Place) {
	s := p.Open(t, Options{})
	made := time.Now()
	put := func(text string, made time.Time) (object string, whole []byte) {
		h := header("a", int64(len(text)))
		h.Made = made
		require.NoError(t, s.Put(t.Context(), h, strings.NewReader(text)))
		objects := p.Records(t)
		require.Len(t, objects, 1)
		return objects[0], p.Read(t, objects[0])
	}
	first, older := put("older", made)
	second, newer := put("newer", made.Add(-time.Hour)) // the clock was set back
	require.NotEqual(t, first, second)
	p.Write(t, first, older)
	holds(t, s, "a", []byte("newer"))
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.WithinDuration(t, made.Add(-time.Hour), list[0].Made, 0)

	p.Write(t, second, newer[:len(newer)-1])
	for _, one := range []store.Store{s, p.Open(t, Options{})} {
		_, err = read(one, "a")
		refused(t, err, store.ReasonCut)
		require.Empty(t, names(t, one))
	}
	p.Write(t, second, newer) // what is older and damaged is in no one's way
	p.Write(t, first, older[:len(older)-1])
	holds(t, s, "a", []byte("newer"))
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.Empty(t, p.Records(t))
}

func quotaAndExpiry(t *testing.T, p Place) {
	s := p.Open(t, Options{MaxBytes: 3 << 20})
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
	require.Equal(t, []string{"a", "b"}, names(t, s), "none is dropped for it")
	require.NoError(t, put("c", 'a', 0), "it has what another one has")
	require.NoError(t, s.Delete(t.Context(), "b"))
	require.NoError(t, put("old", 'd', 2*time.Hour))
	_, err = s.Get(t.Context(), "old", claim)
	require.ErrorIs(t, err, store.ErrNone)
	require.NoError(t, put("e", 'e', 0), "what has expired makes room")
	require.Equal(t, []string{"a", "c", "e"}, names(t, s))
}

// expiryWhileOpen: a record that expires while someone restores it is whole to the end of that,
// whoever sweeps meanwhile, and is gone afterwards.
func expiryWhileOpen(t *testing.T, p Place) {
	s, other := p.Open(t, Options{}), p.Open(t, Options{})
	var data []byte
	var r store.Record
	for life := time.Second; r == nil; life *= 2 { // a machine that is busy may take longer
		h := header("a", 5, 1<<20)
		h.Expires = time.Now().Add(life)
		data = image('x', 5, 1<<20)
		require.NoError(t, s.Put(t.Context(), h, bytes.NewReader(data)))
		var err error
		if r, err = s.Get(t.Context(), "a", claim); err != nil {
			require.ErrorIs(t, err, store.ErrNone)
		}
	}
	require.Eventually(t, func() bool { return len(names(t, other)) == 0 }, time.Hour, time.Millisecond)
	p.Open(t, Options{}) // as a later host does, which sweeps
	_, err := other.Get(t.Context(), "a", claim)
	require.ErrorIs(t, err, store.ErrNone, "no one begins with it")
	var out bytes.Buffer
	require.NoError(t, r.Image(t.Context(), &out))
	require.True(t, bytes.Equal(data, out.Bytes()))
	require.NoError(t, r.Close())
	p.Open(t, Options{})
	require.Empty(t, p.Records(t))
	holds(t, other, "a", put(t, s, "a", 'y', 3))
}

// lists: each host lists what the other has done.
func lists(t *testing.T, p Place) {
	s, other := p.Open(t, Options{}), p.Open(t, Options{})
	for _, name := range []string{"c", "a", "b"} {
		put(t, other, name, 'x', 5)
	}
	require.Equal(t, []string{"a", "b", "c"}, names(t, s))
	require.NoError(t, other.Delete(context.Background(), "a"))
	put(t, other, "b", 'y', 3)
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []int64{3}, list[0].Sections)
	list[0].Manifest[0] = '!'
	list, err = s.List(t.Context())
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, string(list[0].Manifest), "a caller may change what it got")
}
