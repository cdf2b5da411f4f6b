//go:build unix

package runner

// freezes says that sessions can be forked, and a file be handed to them.
const freezes = true
