//go:build !linux

package forkserver

// readMain reads from Main.
func (c *Child) readMain(p []byte) (int, error) { return c.Main.Read(p) }
