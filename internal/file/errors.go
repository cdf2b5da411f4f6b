package file

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
)

// ErrAttributes says that a file system keeps no attributes of files, or has no room for them.
var ErrAttributes = errors.New("attributes of files cannot be kept there")

// Kind is what is at a path in place of a regular file.
type Kind string

// The kinds.
const (
	FIFO      Kind = "FIFO"
	Device    Kind = "device"
	Socket    Kind = "socket"
	Directory Kind = "directory"
	Special   Kind = "special file" // none of the above
)

// NotRegularError says that there is no regular file at a path. It stands in a
// *fs.PathError, which names the path.
type NotRegularError struct {
	// Kind is what is there.
	Kind Kind
}

// Error says what is there, and the next step.
func (e *NotRegularError) Error() string {
	text := fmt.Sprintf("is a %s, not a regular file; ", e.Kind)
	switch e.Kind {
	case Directory:
		return text + "name a file in it"
	case Socket, Special:
		return text + "name a file"
	default:
		return text + "copy what it gives into a file, and name that"
	}
}

// IsNotRegular reports whether err says that there is no regular file at a path.
func IsNotRegular(err error) bool {
	_, is := errors.AsType[*NotRegularError](err)
	return is
}

// TooLargeError says that a file holds more than is read. It stands in a
// *fs.PathError, which names the path.
type TooLargeError struct {
	// Size is what it holds, in bytes. 0: the system does not tell, and more than Max.
	Size int64
	// Max is the bound, in bytes.
	Max int64
}

// Error names the sizes that are known, and the next step.
func (e *TooLargeError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("holds more than %s, and no more are read; make it smaller", size(e.Max, 0))
	}
	return fmt.Sprintf("holds %s, and at most %s are read; make it smaller", size(e.Size, e.Max), size(e.Max, 0))
}

// IsTooLarge reports whether err says that a file holds more than is read.
func IsTooLarge(err error) bool {
	_, is := errors.AsType[*TooLargeError](err)
	return is
}

// size tells bytes in the largest unit that tells n from other.
func size(n, other int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if whole := n / unit.bytes; n >= unit.bytes && (n%unit.bytes == 0 || whole >= 10 && whole != other/unit.bytes) {
			return strconv.FormatInt(whole, 10) + " " + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// refuse is the error for anything but a regular file, nil for one.
func refuse(op, path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: &NotRegularError{Kind: kindOf(info.Mode())}}
}

func kindOf(m fs.FileMode) Kind {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return FIFO
	case m&fs.ModeSocket != 0:
		return Socket
	case m&fs.ModeDevice != 0:
		return Device
	case m.IsDir():
		return Directory
	default:
		return Special
	}
}
