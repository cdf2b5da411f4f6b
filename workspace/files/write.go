package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"

	"github.com/coppice-run/coppice/internal/file"
)

// WriteOptions say how a file is written. The zero value of each field is its default.
type WriteOptions struct {
	// Mode are the permission bits of a new file, of which the umask takes away. 0:
	// 0644. A file that is replaced keeps its own.
	Mode fs.FileMode
	// New refuses to replace a file: it must not be there. false: it is replaced.
	New bool
	// NoParents refuses to make the directories that are missing. false: they are made,
	// with the permission bits 0755 less the umask.
	NoParents bool
	// Attributes are kept beside the content, each a value by its name: the user's extended
	// attributes of the file system, of which a file that is replaced keeps none. Where they
	// cannot be kept, the error is ErrAttributes, and nothing is written.
	Attributes map[string]string
}

// piece is how much of a file is in memory while it is written.
const piece = 64 << 10

// Write makes what r holds the content of a file, whole or not at all, and describes
// it. It reads until r ends, ctx does, or the quota is used up.
func (f *Folder) Write(ctx context.Context, name string, r io.Reader, o WriteOptions) (info Info, err error) {
	at, err := named(name)
	if err != nil {
		return Info{}, fail("write", name, err)
	}
	parent, base := path.Split(at)
	parent = path.Clean("./" + parent)
	if !o.NoParents && parent != "." {
		if err := f.makeAll(parent, 0o755); err != nil {
			return Info{}, fail("write", name, err)
		}
	}
	dir, err := f.dirOf(parent)
	if err != nil {
		return Info{}, fail("write", name, err)
	}
	defer drop(dir, &err)
	info, err = f.replace(ctx, dir, base, r, o)
	info.Path = at
	return info, fail("write", name, err)
}

// replace writes a file in an open directory: whatever becomes of the way to it, the
// file goes there.
func (f *Folder) replace(ctx context.Context, dir *os.Root, base string, r io.Reader, o WriteOptions) (info Info, err error) {
	before, err := replaceable(dir, base, o.New)
	if err != nil {
		return Info{}, err
	}
	mode, size := o.Mode&bits, int64(0)
	if mode == 0 {
		mode = 0o644
	}
	if before != nil {
		size = before.Size()
	}
	account, err := f.store(ctx, size)
	if err != nil {
		return Info{}, err
	}
	defer func() { account.done(err == nil) }()
	temp := temporary()
	out, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|file.NonBlock, mode)
	if err != nil {
		return Info{}, err
	}
	defer func() {
		if err != nil {
			_ = dir.Remove(temp) // why it was not written is what matters
		}
	}()
	err = copyWithin(ctx, out, r, account)
	if err == nil {
		err = file.SetAttributes(out, o.Attributes)
	}
	if err == nil && before != nil {
		err = out.Chmod(before.Mode().Perm())
	}
	var after fs.FileInfo
	if err == nil {
		after, err = out.Stat()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return Info{}, err
	}
	if o.New {
		// A link is made only where nothing stands, also when something has come there by now.
		if err = dir.Link(temp, base); err != nil {
			return Info{}, err
		}
		err = dir.Remove(temp)
	} else {
		err = dir.Rename(temp, base)
	}
	if err != nil {
		return Info{}, err
	}
	return describe(base, after), nil
}

// temporary is a name for a file that is being written, as file.Unfinished says.
func temporary() string { return "." + rand.Text() + ".tmp" }

// unfinished is what temporary makes, and people do not.
var unfinished = regexp.MustCompile(`^\.[A-Z2-7]{26}\.tmp$`)

// replaceable looks at what a write would replace, nil when nothing stands there. It is
// for telling what is wrong; that nothing is written through what stands there is
// the doing of the rename.
func replaceable(dir *os.Root, base string, mustBeNew bool) (fs.FileInfo, error) {
	i, err := dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // nothing stands there, and that is no error
	case err != nil:
		return nil, err
	case mustBeNew:
		return nil, fs.ErrExist
	case i.IsDir():
		return nil, ErrIsDir
	case i.Mode().Type() == fs.ModeSymlink:
		return nil, ErrLink
	case !i.Mode().IsRegular():
		return nil, &file.NotRegularError{Kind: kindOf(i.Mode())}
	default:
		return i, nil
	}
}

func kindOf(m fs.FileMode) file.Kind {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return file.FIFO
	case m&fs.ModeSocket != 0:
		return file.Socket
	case m&fs.ModeDevice != 0:
		return file.Device
	default:
		return file.Special
	}
}

func notRegular(err error) (*file.NotRegularError, bool) {
	return errors.AsType[*file.NotRegularError](err)
}

// copyWithin copies until r or ctx ends, or there is no room for more.
func copyWithin(ctx context.Context, to io.Writer, r io.Reader, account *storing) error {
	buffer := make([]byte, piece)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		got, err := r.Read(buffer)
		if got > 0 {
			if err := account.take(int64(got)); err != nil {
				return err
			}
			if _, err := to.Write(buffer[:got]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what is to be written: %w", err)
		}
	}
}

// WriteBytes is Write of what is in memory.
func (f *Folder) WriteBytes(ctx context.Context, name string, data []byte, o WriteOptions) (Info, error) {
	return f.Write(ctx, name, bytes.NewReader(data), o)
}
