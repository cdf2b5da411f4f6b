package blobstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/store/blobstore"
	"github.com/coppice-run/coppice/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	key   = bytes.Repeat([]byte{7}, store.KeySize)
	claim = store.Claim{Python: "3.12.1", Platform: "linux/amd64"}
)

// open opens the records of a bucket, as one more host.
func open(t require.TestingT, b *blob.Bucket, change ...func(*blobstore.Options)) *blobstore.Store {
	o := blobstore.Options{Key: key}
	for _, c := range change {
		c(&o)
	}
	s, err := blobstore.Open(context.Background(), b, o)
	require.NoError(t, err)
	return s
}

// put keeps a record of two sections, the second of which is a buffer.
func put(s store.Store, name, text string) error {
	data := append([]byte(text), bytes.Repeat([]byte(text[:1]), 20<<10)...)
	h := store.Header{
		Name: name, Session: name, Python: claim.Python, Platform: claim.Platform, Made: time.Now(),
		Manifest: json.RawMessage(`{}`), Sections: []int64{int64(len(text)), 20 << 10},
	}
	return s.Put(context.Background(), h, bytes.NewReader(data))
}

// get returns the first section of a record, all of which is whole.
func get(s store.Store, name string) (string, error) {
	r, err := s.Get(context.Background(), name, claim)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := r.Image(context.Background(), &out); err != nil {
		_ = r.Close() // what failed is told
		return "", err
	}
	return out.String()[:r.Header().Sections[0]], r.Close()
}

// holds requires what a record holds.
func holds(t require.TestingT, s store.Store, name, text string) {
	got, err := get(s, name)
	require.NoError(t, err)
	require.Equal(t, text, got)
}

// suite runs the suite for stores over buckets that make makes, whose records are below a
// prefix.
func suite(t *testing.T, unarbitrated bool, bucket func(t require.TestingT, dir string) *blob.Bucket) {
	storetest.Run(t, func(t require.TestingT, dir string) storetest.Place {
		b := bucket(t, dir)
		return storetest.Place{
			Unarbitrated: unarbitrated,
			Open: func(t require.TestingT, o storetest.Options) store.Store {
				return open(t, b, func(p *blobstore.Options) {
					p.MaxBytes = o.MaxBytes
					if o.AnotherKey {
						p.Key = bytes.Repeat([]byte{8}, store.KeySize)
					}
				})
			},
			Records: func(t require.TestingT) (all []string) {
				for _, k := range keys(t, b, "records/") {
					if data, err := b.ReadAll(context.Background(), k); err == nil && !bytes.HasPrefix(data, []byte("coppice none")) {
						all = append(all, k)
					}
				}
				return all
			},
			Buffers: func(t require.TestingT) []string { // what is left when nothing is left to anybody
				_, err := blobstore.OpenSwept(context.Background(), b, blobstore.Options{Key: key})
				require.NoError(t, err)
				return keys(t, b, "buffers/")
			},
			Read: func(t require.TestingT, name string) []byte {
				data, err := b.ReadAll(context.Background(), name)
				require.NoError(t, err)
				return data
			},
			Write: func(t require.TestingT, name string, data []byte) {
				require.NoError(t, b.WriteAll(context.Background(), name, data, nil))
			},
			Remove: func(t require.TestingT, name string) { require.NoError(t, b.Delete(context.Background(), name)) },
		}
	})
}

func TestSuiteInMemory(t *testing.T) {
	t.Parallel()
	suite(t, false, func(require.TestingT, string) *blob.Bucket { return memblob.OpenBucket(nil) })
}

// TestSuiteInFiles: two writers of one file may both succeed there, as doc.go says.
func TestSuiteInFiles(t *testing.T) {
	t.Parallel()
	suite(t, true, func(t require.TestingT, dir string) *blob.Bucket {
		path := filepath.Join(dir, "bucket")
		require.NoError(t, os.MkdirAll(path, 0o700))
		b, err := fileblob.OpenBucket(path, &fileblob.Options{NoTempDir: true, DirFileMode: 0o700, Metadata: fileblob.MetadataDontWrite})
		require.NoError(t, err)
		return blob.PrefixedBucket(b, "sessions/")
	})
}

// TestSuiteInPages: with a list that comes in pages, as that of a large bucket.
func TestSuiteInPages(t *testing.T) {
	t.Parallel()
	suite(t, false, func(t require.TestingT, _ string) *blob.Bucket {
		b, _ := newBucket(t)
		return b
	})
}

// TestOpen refuses what no records could be kept in.
func TestOpen(t *testing.T) {
	t.Parallel()
	b, d := newBucket(t)
	_, err := blobstore.Open(t.Context(), b, blobstore.Options{})
	require.ErrorContains(t, err, "a key of 32 bytes")
	_, err = blobstore.Open(t.Context(), nil, blobstore.Options{Key: key})
	require.ErrorContains(t, err, "a bucket")
	d.set(func(b *bucket) { b.careless = true })
	_, err = blobstore.Open(t.Context(), b, blobstore.Options{Key: key})
	require.ErrorContains(t, err, "conditional writes")
	d.set(func(b *bucket) { b.careless = false })
	open(t, b)
	require.NotContains(t, keys(t, b, ""), "clock/probe")
}

// TestAnOlderRecordIsCopied to where the newer one stood: it is refused.
func TestAnOlderRecordIsCopied(t *testing.T) {
	t.Parallel()
	b, _ := newBucket(t)
	s := open(t, b)
	require.NoError(t, put(s, "a", "older"))
	older, err := b.ReadAll(t.Context(), keys(t, b, "records/")[0])
	require.NoError(t, err)
	require.NoError(t, put(s, "a", "newer"))
	require.NoError(t, b.WriteAll(t.Context(), keys(t, b, "records/")[0], older, nil))
	_, err = get(s, "a")
	var refused *store.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, store.ReasonSeal, refused.Reason)
	require.ErrorContains(t, err, "an older one")
}
