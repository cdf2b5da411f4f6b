// Package lines is a file of lines that stays within a bound: what the journal, the
// audit log and the trace of messages write to.
//
// # Guarantees
//
//   - A line is whole and in one file. What a failed write left of a line is removed;
//     where that fails too, and where an earlier program was killed in the middle of
//     a line, the next line begins on a row of its own.
//   - It is a regular file: anything else is refused when it is opened.
//   - The file has mode 0600, its folder is made with mode 0700, and what is in
//     the file stays.
//   - A file that a line would make larger than MaxBytes is moved to Path.1, that to
//     Path.2 and so on; the oldest is removed. A line that is larger by itself has a
//     file of its own.
//   - An error costs the line that it is returned for and no other: the next one
//     tries again.
//
// # States
//
//	open ──cannot be moved or opened──▶ shut ──next line──▶ open
//	  └──────────────── Close ──────────┴────▶ closed
//
// Any goroutine may use a File. It owns no goroutine.
package lines

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/coppice-run/coppice/internal/file"
)

// ErrClosed is returned by Append after Close.
var ErrClosed = errors.New("the file is closed")

// Options say where a [File] is. The zero value of each optional field is its
// default.
type Options struct {
	// Path is the file that is written to. Required.
	Path string
	// MaxBytes is how large it gets. 0: 16 MiB.
	MaxBytes int64
	// Keep is how many moved files are kept. 0: 3.
	Keep int
}

// File is such a file.
type File struct {
	o Options

	mu     sync.Mutex
	file   *os.File // nil while it is shut, and when closed; guarded by mu
	size   int64    // guarded by mu
	torn   bool     // the last row has no end; guarded by mu
	closed bool     // guarded by mu
}

// Open opens the file, and makes it and its folder if they do not exist.
func Open(o Options) (*File, error) {
	if o.Path == "" {
		return nil, errors.New("no path")
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 16 << 20
	}
	if o.Keep <= 0 {
		o.Keep = 3
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, err
	}
	f := &File{o: o}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open() error {
	opened, err := file.OpenFile(f.o.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	st, err := opened.Stat()
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	last := []byte{'\n'}
	if st.Size() > 0 {
		if _, err := opened.ReadAt(last, st.Size()-1); err != nil {
			return errors.Join(err, opened.Close())
		}
	}
	f.file, f.size, f.torn = opened, st.Size(), last[0] != '\n'
	return nil
}

// Append writes one line, which ends with a newline. It does not keep it.
func (f *File) Append(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return ErrClosed
	case f.file == nil:
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.size > 0 && f.size+int64(len(line)) > f.o.MaxBytes {
		if err := f.move(); err != nil {
			return fmt.Errorf("move %s: %w", f.o.Path, err)
		}
	}
	if f.torn {
		if _, err := f.file.Write([]byte{'\n'}); err != nil {
			return err
		}
		f.torn = false
		f.size++
	}
	n, err := f.file.Write(line)
	if err != nil {
		if n > 0 && f.file.Truncate(f.size) != nil {
			f.size, f.torn = f.size+int64(n), true
		}
		return err
	}
	f.size += int64(n)
	return nil
}

// move moves the files by one and begins a new one. The mutex is held. A file that
// is open cannot be moved on Windows.
func (f *File) move() error {
	err := f.file.Close()
	f.file = nil
	for i := f.o.Keep; i > 0 && err == nil; i-- {
		if err = os.Rename(f.name(i-1), f.name(i)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return f.open()
}

func (f *File) name(i int) string {
	if i == 0 {
		return f.o.Path
	}
	return f.o.Path + "." + strconv.Itoa(i)
}

// Close closes the file. It may be called more than once.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
