//go:build linux || darwin || freebsd

package file

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// space begins the names of the attributes that belong to the user of a file.
const space = "user."

// SetAttributes gives a file attributes of the user, each a value by its name without what
// all of these begin with.
func SetAttributes(f *os.File, attributes map[string]string) error {
	for name, value := range attributes {
		err := unix.Fsetxattr(int(f.Fd()), space+name, []byte(value), 0)
		switch {
		case err == nil:
		case errors.Is(err, unix.ENOTSUP):
			return ErrAttributes
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.E2BIG), errors.Is(err, unix.ERANGE):
			return fmt.Errorf("%w: there is no room for %.80q", ErrAttributes, name)
		default:
			return fmt.Errorf("keep the attribute %.80q: %w", name, err)
		}
	}
	return nil
}

// Attributes are those of the user that a file has, whose names begin with prefix.
func Attributes(f *os.File, prefix string) (map[string]string, error) {
	fd, found := int(f.Fd()), map[string]string{}
	names, err := attributes(func(to []byte) (int, error) { return unix.Flistxattr(fd, to) })
	if err != nil && !errors.Is(err, unix.ENOTSUP) { // a file system without attributes has none
		return nil, fmt.Errorf("list the attributes: %w", err)
	}
	for _, name := range names {
		short, ours := strings.CutPrefix(name, space)
		if !ours || !strings.HasPrefix(short, prefix) {
			continue
		}
		if value, err := read(func(to []byte) (int, error) { return unix.Fgetxattr(fd, name, to) }); err == nil { // else it has been removed
			found[short] = string(value)
		}
	}
	return found, nil
}
