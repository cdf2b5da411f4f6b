package files

import (
	"fmt"
	"os"
)

// systemName is a name for an open directory that leads to it and nothing else, whatever
// becomes of the path that it was opened by.
func systemName(dir *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", dir.Fd()) }
