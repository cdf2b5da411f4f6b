//go:build linux || darwin

package files

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// space is where the attributes are that belong to the user of a file.
const space = "user."

// keep sets attributes of a file.
func keep(f *os.File, attributes map[string]string) error {
	for name, value := range attributes {
		if err := unix.Fsetxattr(int(f.Fd()), space+name, []byte(value), 0); err != nil {
			return lacking(name, err)
		}
	}
	return nil
}

// lacking is why an attribute was not kept.
func lacking(name string, err error) error {
	switch {
	case errors.Is(err, unix.ENOTSUP):
		return ErrAttributes
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.E2BIG), errors.Is(err, unix.ERANGE):
		return fmt.Errorf("%w: there is no room for %.80q", ErrAttributes, name)
	default:
		return fmt.Errorf("keep the attribute %.80q: %w", name, err)
	}
}

// attributesOf are those of a file whose names begin with prefix.
func attributesOf(f *os.File, prefix string) (map[string]string, error) {
	names, err := whole(func(to []byte) (int, error) { return unix.Flistxattr(int(f.Fd()), to) })
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil //nolint:nilnil // a file system without attributes has none
	}
	if err != nil {
		return nil, fmt.Errorf("list the attributes: %w", err)
	}
	var found map[string]string
	for name := range bytes.SplitSeq(names, []byte{0}) {
		short, ours := strings.CutPrefix(string(name), space)
		if !ours || !strings.HasPrefix(short, prefix) {
			continue
		}
		value, err := whole(func(to []byte) (int, error) { return unix.Fgetxattr(int(f.Fd()), space+short, to) })
		if err != nil {
			continue // it has been removed
		}
		if found == nil {
			found = map[string]string{}
		}
		found[short] = string(value)
	}
	return found, nil
}

// most is the largest that Linux knows of an attribute, and of a list of names.
const most = 64 << 10

// whole asks for something whose length is not known, which may change meanwhile.
func whole(ask func([]byte) (int, error)) ([]byte, error) {
	for size := 1 << 10; ; size *= 8 {
		buffer := make([]byte, min(size, most))
		n, err := ask(buffer)
		if !errors.Is(err, unix.ERANGE) || size >= most {
			return buffer[:max(n, 0)], err
		}
	}
}
