//go:build !unix

package file

// NonBlock is 0: this system knows no such flags, nor FIFOs in folders.
const NonBlock = 0
