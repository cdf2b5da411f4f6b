//go:build linux || darwin || freebsd

package file

import (
	"bytes"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// accessList is the extended attribute in which Linux keeps the access control list of
// a file. A new file in a folder with a default list has one too.
const accessList = "system.posix_acl_access"

// contentSigns are attributes that the system makes of what a file holds; those of other
// content would be wrong.
var contentSigns = []string{"security.ima", "security.evm"}

// keepAttributes gives a new file the extended attributes of the one at path, which it
// will replace, and with them its access control list, as far as the system allows. A
// list that the new file has got from its folder, and the old one has not, is taken
// away: it would let others in.
func keepAttributes(f *os.File, path string) {
	fd := int(f.Fd())
	names, err := attributes(func(to []byte) (int, error) { return unix.Llistxattr(path, to) })
	if err != nil {
		return // a file system that has none
	}
	if !slices.Contains(names, accessList) {
		_ = unix.Fremovexattr(fd, accessList) // it mostly has none
	}
	for _, name := range names {
		if slices.Contains(contentSigns, name) {
			continue
		}
		value, err := read(func(to []byte) (int, error) { return unix.Lgetxattr(path, name, to) })
		if err == nil {
			_ = unix.Fsetxattr(fd, name, value, 0) // some are for the system alone
		}
	}
}

// attributes splits a list of names.
func attributes(list func(to []byte) (int, error)) ([]string, error) {
	all, err := read(list)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(string(bytes.TrimRight(all, "\x00")), "\x00"), func(name string) bool { return name == "" }), nil
}

// read reads what get gives: its length when there is no room for it, and else the
// value. It may grow in between.
func read(get func(to []byte) (int, error)) ([]byte, error) {
	for {
		size, err := get(nil)
		if err != nil || size == 0 {
			return nil, err
		}
		value := make([]byte, size)
		n, err := get(value)
		if err == unix.ERANGE {
			continue
		}
		return value[:max(n, 0)], err
	}
}
