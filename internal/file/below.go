package file

import (
	"path/filepath"
)

// Below reports whether dir is a folder that is root or below it, without a link on the way
// that leads out of root. Of what is elsewhere it says the same whether that is there or
// not. Both are absolute. Somebody who may write below root can change that afterwards: it
// keeps no one out by itself.
func Below(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	in, err := OpenRoot(root)
	if err != nil {
		return false
	}
	defer func() { _ = in.Close() }() // it was only looked into
	info, err := in.Stat(rel)
	return err == nil && info.IsDir()
}
