//go:build !unix

package runner

// freezes says that this system does not fork.
const freezes = false
