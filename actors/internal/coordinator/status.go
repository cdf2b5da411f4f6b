package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-run/coppice/actors/internal/kernelserver"
	"github.com/coppice-run/coppice/actors/internal/process"
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
	URL         string    `json:"url"`
	PID         int       `json:"pid"`
	State       string    `json:"state"`
	Why         string    `json:"why,omitempty"`
	Python      string    `json:"python"`
	Fingerprint string    `json:"fingerprint"`
	Started     time.Time `json:"started"`
	// Hosts is how many programs use it, Sessions how many sessions are kept in
	// it, in use or not.
	Hosts    int `json:"hosts"`
	Sessions int `json:"sessions"`
}

// Look tells of the gateways in dir. It changes nothing and takes no lock, so it
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
		s := Status{
			URL: g.URL, PID: g.Process.PID, State: StateRunning, Python: g.Python, Fingerprint: g.Fingerprint, Started: g.Started,
			Hosts: hosts(dir, g.Fingerprint), Sessions: kept[g.Process],
		}
		if !g.lives(dir) {
			s.State, s.Why = StateGone, "its process has ended"
		} else if err := answers(ctx, g); err != nil {
			s.State, s.Why = StateSilent, err.Error()
			if !g.settled() {
				s.State = StateStarting
			}
		}
		found = append(found, s)
	}
	return found, nil
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
		stopped = append(stopped, Status{URL: g.URL, PID: g.Process.PID, State: StateGone, Python: g.Python, Fingerprint: g.Fingerprint, Started: g.Started})
	}
	for path, e := range entries(dir) {
		if !process.Alive(e.Gateway) {
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
