//go:build unix

package store

import (
	"errors"
	"os"
)

// syncDir has the names in a folder on the disk when it returns.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
