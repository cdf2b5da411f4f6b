package sharedgateway

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/messages"
)

// lease is the lock that says that a host lives. The system gives it up when
// the host ends.
type lease struct {
	path string
	lock *flock.Flock
}

// newLease makes a lease. Gateways remove leases that they can lock, so it gets
// its name only once it is locked.
func newLease(dir, place string) (*lease, error) {
	id := messages.NewID()
	hidden := filepath.Join(dir, hostsDir, "."+id)
	l := &lease{path: filepath.Join(dir, hostsDir, place+"-"+id+".lock"), lock: flock.New(hidden, flock.SetPermissions(0o600))}
	ok, err := l.lock.TryLock()
	if err == nil && !ok {
		err = fmt.Errorf("%s is locked", hidden)
	}
	if err == nil {
		err = os.Rename(hidden, l.path)
	}
	if err != nil {
		_ = l.lock.Close()
		return nil, fmt.Errorf("make a lease of the shared gateway: %w", err)
	}
	return l, nil
}

func (l *lease) release() {
	_ = os.Remove(l.path)
	_ = l.lock.Close()
}

// hosts counts the hosts that use a gateway.
func hosts(dir, place string) int {
	paths, _ := filepath.Glob(filepath.Join(dir, hostsDir, place+"-*.lock"))
	n := 0
	for _, p := range paths {
		if held(p) {
			n++
		}
	}
	return n
}
