//go:build !linux && !darwin

package files

import "os"

// keep sets attributes of a file, which this system has none of.
func keep(_ *os.File, attributes map[string]string) error {
	if len(attributes) > 0 {
		return ErrAttributes
	}
	return nil
}

// attributesOf are those of a file: there are none.
func attributesOf(*os.File, string) (map[string]string, error) { return nil, nil } //nolint:nilnil // there are none
