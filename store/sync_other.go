//go:build !unix

package store

// syncDir does nothing: this system does not open folders to write them out.
func syncDir(string) error { return nil }
