package files

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// How long a path, and an element of one, may be, in bytes.
const (
	maxPath    = 4096
	maxElement = 255
)

// clean checks a path from outside and returns it in its shortest form, "." for the
// folder itself. What the file system makes of it is os.Root's to guard; this refuses
// what says plainly that it wants out, also in the notation of another system.
func clean(name string) (string, error) {
	switch {
	case len(name) > maxPath:
		return "", fmt.Errorf("%w: it has %d bytes; at most %d are possible", ErrPath, len(name), maxPath)
	case !utf8.ValidString(name):
		return "", fmt.Errorf("%w: it is not UTF-8", ErrPath)
	case strings.ContainsRune(name, 0):
		return "", fmt.Errorf("%w: it holds a NUL", ErrPath)
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, `\`), filepath.IsAbs(name), drive(name):
		return "", fmt.Errorf("%w: it is absolute; paths are relative to the folder", ErrOutside)
	}
	for element := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		if element == ".." {
			return "", fmt.Errorf("%w: it has an element \"..\"", ErrOutside)
		}
		if len(element) > maxElement {
			return "", fmt.Errorf("%w: one of its elements has %d bytes; at most %d are possible", ErrPath, len(element), maxElement)
		}
	}
	name = path.Clean("./" + name)
	if local := filepath.FromSlash(name); !filepath.IsLocal(local) { // names that are devices on Windows
		return "", fmt.Errorf("%w: it is no path within a folder on this system", ErrOutside)
	}
	return name, nil
}

// drive reports whether a path begins with a drive of Windows, which is absolute there
// and means nothing good elsewhere: C:, C:\x, C:/x.
func drive(name string) bool {
	if len(name) < 2 || name[1] != ':' {
		return false
	}
	letter := name[0] | 0x20
	return letter >= 'a' && letter <= 'z' && (len(name) == 2 || name[2] == '\\' || name[2] == '/')
}

// named is clean for what cannot be done to the folder itself.
func named(name string) (string, error) {
	at, err := clean(name)
	if err == nil && at == "." {
		err = fmt.Errorf("%w: it is the folder itself", ErrPath)
	}
	return at, err
}
