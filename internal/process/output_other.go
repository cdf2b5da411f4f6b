//go:build !unix

package process

import "os"

// takeLeft does nothing: pipes have no deadline here, and are closed.
func takeLeft(*Ring, *os.File, int) {}
