package sharedgateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/process"
)

// States of a gateway in a [Status].
const (
	StateRunning  = "running"  // it answers
	StateStarting = "starting" // it has not answered yet
	StateSilent   = "silent"   // its process lives and it does not answer
	StateGone     = "gone"     // its process has ended; the next host forgets it
)

// Status is what can be seen of one gateway. It holds no token.
type Status struct {
	URL         string `json:"url"`
	PID         int    `json:"pid"`
	State       string `json:"state"`
	Why         string `json:"why,omitempty"`
	Python      string `json:"python"`
	Fingerprint string `json:"fingerprint"`
	// Shard is its number among the gateways of the fingerprint, from 0.
	Shard   int       `json:"shard"`
	Started time.Time `json:"started"`
	// Kernels is how many kernels it has, those that wait for a session too, or -1
	// when it did not say; MaxKernels is how many it takes.
	Kernels    int `json:"kernels"`
	MaxKernels int `json:"max_kernels"`
	// Hosts is how many programs use it, Sessions how many sessions are kept in
	// it, in use or not.
	Hosts    int `json:"hosts"`
	Sessions int `json:"sessions"`
}

// Look lists the gateways in dir. It changes nothing and takes no lock, so it
// never waits for one; a gateway that does not answer takes it 2 s.
func Look(ctx context.Context, dir string) ([]Status, error) {
	r, err := read(dir)
	if err != nil {
		return nil, err
	}
	kept := map[process.Identity]int{}
	for _, e := range entries(dir) {
		kept[e.Gateway]++
	}
	found := make([]Status, 0, len(r.Gateways))
	for _, g := range r.Gateways {
		s := g.status(StateRunning)
		s.Hosts, s.Sessions = hosts(dir, g.place()), kept[g.Process]
		switch {
		case !g.lives(dir):
			s.State, s.Why = StateGone, "its process has ended"
		case !g.settled():
			s.State = StateStarting
			if err := answers(ctx, g); err == nil {
				s.State = StateRunning
			} else {
				s.Why = err.Error()
			}
		default:
			if s.Kernels, err = kernels(ctx, g); err != nil {
				s.State, s.Why = StateSilent, err.Error()
			}
		}
		found = append(found, s)
	}
	slices.SortStableFunc(found, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Shard, b.Shard))
	})
	return found, nil
}

// status is what the record says of a gateway.
func (g Gateway) status(state string) Status {
	return Status{
		URL: g.URL, PID: g.Process.PID, State: state, Python: g.Python, Fingerprint: g.Fingerprint, Shard: g.Shard,
		Started: g.Started, Kernels: -1, MaxKernels: g.MaxKernels,
	}
}

// Stop ends all gateways in dir with their kernels, and forgets them and the
// sessions in them. It returns what it ended. A host that uses one hears of it,
// and starts another when it has something to run.
func Stop(ctx context.Context, dir string) ([]Status, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	unlock, err := lock(ctx, dir, "stopping the gateways")
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, err := read(dir)
	if err != nil {
		return nil, err
	}
	stopped := make([]Status, 0, len(r.Gateways))
	left := record{}
	for _, g := range r.Gateways {
		if id, ok := kernelserver.SharedProcess(g.Dir); ok && !g.settled() && g.lives(dir) {
			g.Process = id
		}
		if !kernelserver.Remove(ctx, g.Process, g.Dir) {
			left.Gateways = append(left.Gateways, g)
			err = errors.Join(err, fmt.Errorf("end the shared %v: it is still running", g))
			continue
		}
		stopped = append(stopped, g.status(StateGone))
	}
	for path, e := range entries(dir) {
		if process.Ended(e.Gateway) {
			_ = os.Remove(path)
		}
	}
	if len(left.Gateways) == 0 {
		if e := os.Remove(filepath.Join(dir, recordFile)); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
		return stopped, err
	}
	return stopped, errors.Join(err, write(dir, left))
}
