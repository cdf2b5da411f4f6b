package file

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Unfinished is the pattern (of path.Match) for the names of the temporary files that
// [Write] makes, beside what it writes. A program that is killed leaves one.
const Unfinished = ".*.tmp"

// WriteOptions say how a file is written. The zero value of a field is its default.
type WriteOptions struct {
	// Mode are the permission bits, of which the umask takes away. 0: 0600.
	Mode fs.FileMode
	// Like, when set, is the file that is replaced: its permission bits are kept as
	// they are, and its owner, its group and its extended attributes, among them an
	// access control list, as far as the system allows. Mode is not used.
	Like fs.FileInfo
	// Durable flushes the file to the disk before it takes its place, and the folder
	// after it, so that what was written outlives a crash of the machine. Without it
	// the new file may be the old one after that, or on some file systems empty.
	Durable bool
	// Before, when set, runs when everything is written, right before the file takes
	// its place. An error of it keeps it from that, and is returned.
	Before func() error
}

// Write makes data the content of the file at path, whole or not at all: a reader
// finds what was there before or what is there after, also when the program is killed.
// The data goes to a temporary file in the same folder, which is then renamed. Its name
// cannot be guessed, and nothing that is there is written to: a symbolic link, a FIFO
// or another hard link at path is replaced and not followed. The folder must be there.
//
// An error names path and leaves what is there as it is.
func Write(path string, data []byte, o WriteOptions) error {
	return WriteFrom(path, func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	}, o)
}

// WriteFrom is Write of what from writes, for content that need not be in memory as a
// whole. An error of from leaves what is there as it is, and is returned.
func WriteFrom(path string, from func(to io.Writer) error, o WriteOptions) error {
	if err := write(path, from, o); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func write(path string, from func(to io.Writer) error, o WriteOptions) (err error) {
	mode := o.Mode.Perm()
	if o.Like != nil {
		mode = o.Like.Mode().Perm()
	} else if mode == 0 {
		mode = 0o600
	}
	tmp, err := createBeside(path, mode)
	if err != nil {
		return err
	}
	placed := false
	defer func() {
		if !placed {
			_ = os.Remove(tmp.Name()) // why it is there is the news
		}
	}()
	if err := fill(tmp, path, from, o); err != nil {
		return err
	}
	if o.Before != nil {
		if err := o.Before(); err != nil {
			return err
		}
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	placed = true
	if o.Durable {
		syncDir(filepath.Dir(path))
	}
	return nil
}

// fill writes the temporary file and closes it.
func fill(tmp *os.File, path string, from func(to io.Writer) error, o WriteOptions) (err error) {
	defer func() { err = errors.Join(err, tmp.Close()) }()
	if o.Like != nil {
		keepOwner(tmp, o.Like)
		keepAttributes(tmp, path)
		if err := tmp.Chmod(o.Like.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := from(tmp); err != nil {
		return err
	}
	if o.Durable {
		return tmp.Sync()
	}
	return nil
}

// maxBase is how much of a file's name is in that of its temporary file, in bytes: no
// system takes names of more than 255.
const maxBase = 100

// randomBytes is how many random bytes are in the name of a temporary file, in
// hexadecimal digits.
const randomBytes = 8

// RemoveUnfinished removes the temporary files that programs have left which were killed
// while they wrote the file at path. It is for who keeps all others from writing there,
// by a lock: their temporary files are removed too. What cannot be removed stays. Files
// whose names are so long that the temporary ones do not tell them apart are left alone.
func RemoveUnfinished(path string) {
	base := filepath.Base(path)
	if len(base) > maxBase {
		return
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), "."+base+".")
		random, ours := strings.CutSuffix(rest, ".tmp")
		if ok && ours && len(random) == 2*randomBytes && strings.Trim(random, "0123456789abcdef") == "" && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// createBeside makes a temporary file in the folder of path. Unlike os.CreateTemp it
// leaves the mode to the caller and the umask.
func createBeside(path string, mode fs.FileMode) (*os.File, error) {
	base := filepath.Base(path)
	for len(base) > maxBase {
		_, size := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-size]
	}
	for {
		var b [randomBytes]byte
		// crypto/rand.Read never fails; it ends the program instead.
		_, _ = rand.Read(b[:])
		name := filepath.Join(filepath.Dir(path), "."+base+"."+hex.EncodeToString(b[:])+".tmp")
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
