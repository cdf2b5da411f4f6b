//go:build !unix

package forkserver

// Unread is not known on this system, where nothing but the session reads its output.
func (c *Child) Unread() bool { return false }
