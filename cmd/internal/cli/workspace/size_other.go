//go:build !unix

package workspace

// watchSize does nothing here: no signal tells of it.
func watchSize(func()) (stop func()) { return func() {} }
