package blobstore_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"
)

// bucket is the driver of a bucket that does what it is told to, in front of a real one.
type bucket struct {
	driver.Bucket // nil: what is not here is not called
	real          *blob.Bucket

	mu sync.Mutex
	// before and after are asked about each operation with its key, and may have it fail: it
	// is not done, or done and the answer lost. torn has a write break in its middle.
	before, after, torn func(op, key string) error
	// careless has it not look whether there is an object already.
	careless bool
	// frozen is what lists show, nil for what there is.
	frozen []*blob.ListObject
}

// newBucket returns a bucket in memory that does as it should, and its driver.
func newBucket(t require.TestingT) (*blob.Bucket, *bucket) {
	d := &bucket{real: memblob.OpenBucket(nil)}
	b := blob.NewBucket(d)
	if t, ok := t.(*testing.T); ok {
		t.Cleanup(func() { require.NoError(t, errors.Join(b.Close(), d.real.Close())) })
	}
	return b, d
}

// set changes what the bucket does.
func (b *bucket) set(change func(b *bucket)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

// heal has the bucket do as it should.
func (b *bucket) heal() {
	b.set(func(b *bucket) { b.before, b.after, b.torn, b.frozen = nil, nil, nil, nil })
}

// freeze has lists show for ever what there is now.
func (b *bucket) freeze(t *testing.T) {
	all, _, err := b.real.ListPage(t.Context(), blob.FirstPageToken, 1<<20, nil)
	require.NoError(t, err)
	b.set(func(b *bucket) { b.frozen = all })
}

// do does an operation, as far as it may.
func (b *bucket) do(op, key string, f func() error) error {
	b.mu.Lock()
	before, after := b.before, b.after
	b.mu.Unlock()
	if before != nil {
		if err := before(op, key); err != nil {
			return err
		}
	}
	err := f()
	if after != nil && err == nil {
		err = after(op, key)
	}
	return err
}

func (b *bucket) ErrorCode(err error) gcerrors.ErrorCode { return gcerrors.Code(err) }

func (b *bucket) ErrorAs(error, any) bool { return false }

func (b *bucket) Close() error { return nil }

func (b *bucket) Attributes(ctx context.Context, key string) (a *driver.Attributes, err error) {
	err = b.do("stat", key, func() error {
		real, err := b.real.Attributes(ctx, key)
		if err == nil {
			a = &driver.Attributes{ModTime: real.ModTime, Size: real.Size, ContentType: real.ContentType}
		}
		return err
	})
	return a, err
}

func (b *bucket) Delete(ctx context.Context, key string, _ *driver.DeleteOptions) error {
	return b.do("delete", key, func() error { return b.real.Delete(ctx, key) })
}

func (b *bucket) ListPaged(ctx context.Context, o *driver.ListOptions) (page *driver.ListPage, err error) {
	err = b.do("list", o.Prefix, func() error {
		b.mu.Lock()
		frozen := b.frozen
		b.mu.Unlock()
		token, more := blob.FirstPageToken, []byte(nil)
		if len(o.PageToken) > 0 {
			token = o.PageToken
		}
		const size = 3 // so that there are several pages
		objects := frozen
		if frozen == nil {
			if objects, more, err = b.real.ListPage(ctx, token, size, &blob.ListOptions{Prefix: o.Prefix}); err != nil {
				return err
			}
		}
		page = &driver.ListPage{NextPageToken: more}
		for _, one := range objects {
			if strings.HasPrefix(one.Key, o.Prefix) {
				page.Objects = append(page.Objects, &driver.ListObject{Key: one.Key, ModTime: one.ModTime, Size: one.Size})
			}
		}
		return nil
	})
	return page, err
}

type read struct{ *blob.Reader }

func (r read) As(any) bool { return false }

func (r read) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{ContentType: r.ContentType(), ModTime: r.ModTime(), Size: r.Size()}
}

func (b *bucket) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (r driver.Reader, err error) {
	err = b.do("read", key, func() error {
		real, err := b.real.NewRangeReader(ctx, key, offset, length, nil)
		r = read{real}
		return err
	})
	return r, err
}

// written is a write that is not there before it is closed.
type written struct {
	b       *bucket
	ctx     context.Context //nolint:containedctx // it is the write's
	abandon func()
	key     string
	to      io.WriteCloser
}

func (b *bucket) NewTypedWriter(ctx context.Context, key, contentType string, o *driver.WriterOptions) (driver.Writer, error) {
	b.mu.Lock()
	careless := b.careless
	b.mu.Unlock()
	writing, abandon := context.WithCancel(ctx)
	to, err := b.real.NewWriter(writing, key, &blob.WriterOptions{ContentType: contentType, IfNotExist: o.IfNotExist && !careless})
	return &written{b, writing, abandon, key, to}, err
}

func (w *written) Write(p []byte) (int, error) {
	w.b.mu.Lock()
	torn := w.b.torn
	w.b.mu.Unlock()
	if torn != nil {
		if err := torn("write", w.key); err != nil {
			n, _ := w.to.Write(p[:len(p)/2]) // what fails is told
			return n, err
		}
	}
	return w.to.Write(p)
}

func (w *written) Close() error {
	defer w.abandon()
	return w.b.do("write", w.key, w.to.Close)
}

// keys are those of the objects below a prefix.
func keys(t require.TestingT, b *blob.Bucket, prefix string) []string {
	var all []string
	for it := b.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := it.Next(context.Background())
		if errors.Is(err, io.EOF) {
			slices.Sort(all)
			return all
		}
		require.NoError(t, err)
		all = append(all, o.Key)
	}
}
