//go:build !unix

package file

import (
	"io/fs"
	"os"
)

// syncDir does nothing: directories cannot be opened to be flushed here.
func syncDir(string) {}

// keepOwner does nothing: a new file belongs to whoever makes it, and its
// access list comes from the directory.
func keepOwner(*os.File, fs.FileInfo) {}
