package file

import (
	"errors"
	"io/fs"
	"os"
)

// Open opens a regular file for reading. A symbolic link is followed.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is Open with the flags and the mode of os.OpenFile: to append to a file,
// or to see that it may be written.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	return open(path, func() (fs.FileInfo, error) { return os.Stat(path) },
		func() (*os.File, error) { return os.OpenFile(path, flag|NonBlock, mode) })
}

// OpenIn is Open of a path within root, which no link leads out of. The path in an
// error is name.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return open(name, func() (fs.FileInfo, error) { return root.Stat(name) },
		func() (*os.File, error) { return root.OpenFile(name, os.O_RDONLY|NonBlock, 0) })
}

// OpenRoot is os.OpenRoot, which waits when there is a FIFO in place of the
// directory: that is an error here.
func OpenRoot(path string) (*os.Root, error) {
	at := path
	if at != "" {
		at += string(os.PathSeparator) // what ends in one is a directory, or cannot be opened
	}
	root, err := os.OpenRoot(at)
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		failed.Path = path
	}
	return root, err
}

// open looks, opens and looks again: the first look keeps the hands off what is
// harmed or woken by being opened, and the second one counts.
func open(path string, look func() (fs.FileInfo, error), open func() (*os.File, error)) (*os.File, error) {
	// What cannot be looked at tells why when it is opened.
	if info, err := look(); err == nil {
		if err := refuse("open", path, info); err != nil {
			return nil, err
		}
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = refuse("open", path, info)
	}
	if err != nil {
		_ = f.Close() // nothing was done with it
		return nil, err
	}
	return f, nil
}
