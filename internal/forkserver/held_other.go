//go:build !linux

package forkserver

import "io"

// HeldReader is [Child.MainReader]: sessions do not outlive their host on this system.
func (c *Child) HeldReader([]byte) io.Reader { return c.MainReader() }
