package checkup

import (
	"context"
	"os"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/machine"
	"github.com/coppice-run/coppice/internal/sharedgateway"
)

// The types of the mechanisms.
type (
	// Limits is what a process of this user can get here.
	Limits = machine.Limits
	// Loose is a file that others can read.
	Loose = machine.Loose
	// Leftover is something that nobody claims any more.
	Leftover = sharedgateway.Leftover
	// Trace is the file in which the messages of kernels are noted.
	Trace = ipctrace.File
	// LockHolder is who said last that it holds the lock of the shared gateway.
	LockHolder = sharedgateway.LockHolder
	// LockState says how it stands with that lock.
	LockState = sharedgateway.LockState
	// LockedError says that the lock was not to be had.
	LockedError = sharedgateway.LockedError
)

// The states of the lock that somebody should know of.
const (
	LockHeld  = sharedgateway.LockHeld
	LockStuck = sharedgateway.LockStuck
)

// OpenTrace makes a trace in a folder.
func OpenTrace(dir string) (*Trace, error) { return ipctrace.Open(dir) }

// Look reads the limits of this machine.
func Look(tempDir string) Limits { return machine.Look(tempDir) }

// FindLoose looks through a folder for what others have rights of mask on.
func FindLoose(dir string, skip []string, mask os.FileMode, most int) ([]Loose, error) {
	return machine.FindLoose(dir, skip, mask, most)
}

// Leftovers finds what hosts that were killed left behind; dir is the folder of
// the shared gateways.
func Leftovers(dir string) ([]Leftover, error) { return sharedgateway.Leftovers(dir) }

// Clean ends and removes it, and returns what is gone.
func Clean(ctx context.Context, dir string) ([]Leftover, error) { return sharedgateway.Clean(ctx, dir) }

// Groups returns the folder under which sessions with limits would get control
// groups, their controllers, and why the others are not there. The error says why
// there are none.
func Groups() (base string, controllers []string, lacking string, err error) {
	return cgroup.Check(cgroup.Options{Want: []string{cgroup.Memory, cgroup.PIDs, cgroup.CPU}})
}

// LeftGroups returns the control groups that hosts which were killed left behind.
func LeftGroups() []string { return cgroup.Leftovers(cgroup.Options{}) }

// CleanGroups ends what is in them and removes them, and returns those that are
// gone.
func CleanGroups(ctx context.Context) ([]string, error) {
	return cgroup.Clean(ctx, cgroup.Options{})
}

// Locked looks at the lock of the shared gateways.
func Locked(dir string) (LockHolder, LockState) { return sharedgateway.Locked(dir) }
