//go:build !linux && !darwin && !freebsd

package file

import "os"

// SetAttributes gives a file attributes, which are not known here.
func SetAttributes(_ *os.File, attributes map[string]string) error {
	if len(attributes) > 0 {
		return ErrAttributes
	}
	return nil
}

// Attributes are those that a file has: none.
func Attributes(*os.File, string) (map[string]string, error) { return map[string]string{}, nil }
