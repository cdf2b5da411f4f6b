package temp

import (
	"os"
	"strconv"
	"strings"
)

// mounts returns where something is mounted.
func mounts() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var at []string
	for line := range strings.Lines(string(data)) {
		const point = 4 // number, parent, device, root, mount point, …
		if f := strings.Fields(line); len(f) > point {
			at = append(at, plain(f[point]))
		}
	}
	return at, nil
}

// plain reads a path in which what is no letter of a line stands as a backslash and three
// octal digits.
func plain(path string) string {
	const digits, octal, bits = 3, 8, 8
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(path, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if n, err := strconv.ParseUint(rest[:min(len(rest), digits)], octal, bits); err == nil && len(rest) >= digits {
			b.WriteByte(byte(n))
			path = rest[digits:]
			continue
		}
		b.WriteByte('\\')
		path = rest
	}
}
