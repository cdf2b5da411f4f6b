package notebook

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"

	"github.com/coppice-run/coppice/internal/file"
)

// saved is what a file held when it was last read or written. Of a notebook that was
// read these are the bytes that its document holds anyway; of one that was written a
// digest of them, so that a large notebook is not in memory twice.
type saved struct {
	data []byte // nil when only the digest is known
	digested
}

// digested tells contents apart.
type digested struct {
	size int64
	sum  [sha256.Size]byte
}

// most is how much is read of a file to see whether it holds the same, in bytes.
func (s saved) most() int64 { return max(int64(len(s.data)), s.size) + 1 }

// same reports whether r gives what the file held, holding little of it.
func (s saved) same(r io.Reader) (bool, error) {
	if s.data != nil {
		return equalContent(r, s.data)
	}
	d := newDigester()
	switch _, err := io.Copy(d, r); {
	case file.IsTooLarge(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return d.sum() == s.digested, nil
}

// errDiffers ends a comparison.
var errDiffers = errors.New("the content differs")

// comparing is a writer that takes what the file held, and fails with errDiffers as soon
// as something else comes.
type comparing struct{ rest []byte }

func (c *comparing) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(c.rest, p) {
		return 0, errDiffers
	}
	c.rest = c.rest[len(p):]
	return len(p), nil
}

// digester is a writer that digests what it takes.
type digester struct {
	hash hash.Hash
	size int64
}

func newDigester() *digester { return &digester{hash: sha256.New()} }

func (d *digester) Write(p []byte) (int, error) {
	d.size += int64(len(p))
	return d.hash.Write(p)
}

// sum is the digest of what was taken so far.
func (d *digester) sum() digested {
	s := digested{size: d.size}
	d.hash.Sum(s.sum[:0])
	return s
}
