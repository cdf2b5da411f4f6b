// Package proc looks at the processes of this machine, so that tests can prove
// that none is left behind. It reads /proc: what needs it is tested on Linux.
package proc

// Process is one process.
type Process struct {
	PID, Parent int
	Command     string
}
