package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/store"
)

// Options are those of a store that the suite needs. The zero value is the store's default.
type Options struct {
	// MaxBytes is the quota.
	MaxBytes int64
	// AnotherKey has the store seal with a key that no other one has.
	AnotherKey bool
}

// Place is where records are, as the suite damages it. Any goroutine may call its functions.
type Place struct {
	// Open opens it once more, as another host does.
	Open func(t require.TestingT, o Options) store.Store
	// Records and Buffers are the names of the objects that hold the records and the large
	// sections, as far as records need them.
	Records, Buffers func(t require.TestingT) []string
	// Read, Write and Remove are for one object, whatever the store thinks of it.
	Read   func(t require.TestingT, name string) []byte
	Write  func(t require.TestingT, name string, data []byte)
	Remove func(t require.TestingT, name string)
	// Unarbitrated says that two hosts that write one name in the same moment can both
	// succeed there: what is promised of that is not asked for.
	Unarbitrated bool
}

// Run runs the suite. make makes a place that is empty, below a folder that is empty or not
// there.
func Run(t *testing.T, make func(t require.TestingT, dir string) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"put and get":          putAndGet,
		"buffers once":         buffersOnce,
		"the same twice":       theSameTwice,
		"refusals":             refusals,
		"open once":            openOnce,
		"damage":               damage,
		"a damaged buffer":     damagedBuffer,
		"another name":         anotherName,
		"an older record":      olderRecord,
		"quota and expiry":     quotaAndExpiry,
		"expiry while open":    expiryWhileOpen,
		"a put that fails":     failedPut,
		"an image that moves":  movingImage,
		"many at once":         manyAtOnce,
		"one name at once":     oneNameAtOnce,
		"lists of each other":  lists,
		"deleted while opened": deletedWhileOpen,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, make(t, t.TempDir()))
		})
	}
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		model(t, make)
	})
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

// put keeps what image makes.
func put(t require.TestingT, s store.Store, name string, seed byte, sections ...int64) []byte {
	data := image(seed, sections...)
	require.NoError(t, s.Put(context.Background(), header(name, sections...), bytes.NewReader(data)))
	return data
}

// read returns what a record holds, and closes it.
func read(s store.Store, name string) ([]byte, error) {
	r, err := s.Get(context.Background(), name, claim)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = r.Image(context.Background(), &out)
	for range 2 {
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), err
}

// holds requires that a record holds something.
func holds(t require.TestingT, s store.Store, name string, want []byte) {
	got, err := read(s, name)
	require.NoError(t, err, name)
	require.True(t, bytes.Equal(want, got), "%s holds something else", name)
}

// names are those of the records that a list shows.
func names(t require.TestingT, s store.Store) []string {
	list, err := s.List(context.Background())
	require.NoError(t, err)
	var all []string
	for _, h := range list {
		all = append(all, h.Name)
	}
	return all
}

// refused requires that an error is a refusal for a reason.
func refused(t require.TestingT, err error, reason store.Reason, msg ...any) {
	var r *store.RefusedError
	require.ErrorAs(t, err, &r, msg...)
	require.Equal(t, reason, r.Reason, msg...)
	require.NotEmpty(t, r.Problem, msg...)
}
