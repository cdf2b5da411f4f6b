//go:build !linux

package files

import "os"

// systemName is the path of an open directory. Another directory that takes its place
// between its opening and the look of the system would be watched instead: only names
// and kinds of changes would be told of it, never contents.
func systemName(dir *os.File) string { return dir.Name() }
