package sharedgateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// Leftover is something of ours that is not claimed any more. Most of it is ended
// by the next host on its way; a process that was stopped, or a folder that no
// host uses again, stays.
type Leftover struct {
	// What says it for people: "kernel 4711, whose gateway has ended".
	What string
	// PID is the process that is left, 0 for a file.
	PID int

	end func(context.Context) error
}

// young is how old a temporary file must be before it is one that a crash left.
const young = time.Minute

// Leftovers finds what hosts that were killed left in dir and in the folders of
// their gateways. It changes nothing and waits for nothing.
func Leftovers(dir string) ([]Leftover, error) {
	r, err := read(dir)
	if err != nil {
		return nil, err
	}
	var found []Leftover
	add := func(what string, pid int, end func(context.Context) error) {
		found = append(found, Leftover{What: what, PID: pid, end: end})
	}
	if data, err := file.Read(context.Background(), filepath.Join(dir, recordFile), maxRecord); err == nil && !json.Valid(data) {
		path := filepath.Join(dir, recordFile)
		add(path+", which cannot be understood", 0, removal(path))
	}
	for _, g := range r.Gateways {
		if process.Ended(g.Process) {
			add(fmt.Sprintf("the record of gateway %d, which has ended", g.Process.PID), 0, func(ctx context.Context) error { return forget(ctx, dir, g) })
		}
	}
	found = append(found, strays(dir, r)...)
	for path, e := range entries(dir) {
		gone := process.Ended(e.Gateway)
		// The journal proves whose kernel it is, also when its folder is gone.
		if gone && process.Alive(e.Process) && !slices.ContainsFunc(found, func(l Leftover) bool { return l.PID == e.Process.PID }) {
			add(fmt.Sprintf("process %d of a gateway that has ended", e.Process.PID), e.Process.PID, func(ctx context.Context) error { return kill(ctx, e.Process) })
		}
		if gone || process.Ended(e.Process) && e.Process.PID != 0 {
			add(fmt.Sprintf("the journal of session %q, whose kernel has ended", e.Key.Session), 0, removal(path, logOf(path)))
		}
	}
	leases, _ := filepath.Glob(filepath.Join(dir, hostsDir, "*.lock"))
	for _, path := range leases {
		if !held(path) {
			add("the lease of a host that was killed, "+path, 0, removal(path))
		}
	}
	logs, _ := filepath.Glob(filepath.Join(dir, sessionsDir, "*"+logged))
	for _, path := range logs {
		base := strings.TrimSuffix(path, logged)
		if _, err := os.Lstat(base + journalled); errors.Is(err, os.ErrNotExist) && !held(base+".lock") {
			add("the log of a session that is not journalled, "+path, 0, removal(path))
		}
	}
	for _, path := range unfinished(dir) {
		add("the unfinished file "+path, 0, removal(path))
	}
	if h, state := Locked(dir); state == LockStale {
		add(fmt.Sprintf("the note of process %d in %s, which does not hold the lock any more", h.PID, filepath.Join(dir, lockFile)), 0,
			func(context.Context) error { return nil }) // who takes the lock, as Clean has, replaces it
	}
	return found, nil
}

// strays are the processes and folders of gateways that are not claimed.
func strays(dir string, r record) []Leftover {
	claimed := func(id process.Identity, place string) bool {
		for _, g := range r.Gateways {
			if g.Process == id {
				return true
			}
		}
		for _, e := range entries(dir) {
			if e.Gateway == id {
				return true // it puts itself back into the record
			}
		}
		return hosts(dir, place) > 0
	}
	var found []Leftover
	for _, s := range kernelserver.Strays(dir, claimed) {
		end := func(ctx context.Context) error {
			if !s.End(ctx) {
				return fmt.Errorf("end what is left of %s: it is still there", s.Dir)
			}
			return nil
		}
		if s.Gateway.PID != 0 {
			found = append(found, Leftover{What: fmt.Sprintf("gateway %d, which no record names and no host uses", s.Gateway.PID), PID: s.Gateway.PID, end: end})
			continue
		}
		for _, k := range s.Kernels {
			found = append(found, Leftover{What: fmt.Sprintf("process %d of a gateway that has ended", k.PID), PID: k.PID, end: end})
		}
		if len(s.Kernels) == 0 {
			found = append(found, Leftover{What: "the folder " + s.Dir + " of a gateway that has ended", end: end})
		}
	}
	return found
}

// unfinished returns temporary files that are too old for their writer to live.
func unfinished(dir string) []string {
	var found []string
	for _, pattern := range []string{file.Unfinished, sessionsDir + "/" + file.Unfinished, hostsDir + "/.*"} {
		paths, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		for _, path := range paths {
			info, err := os.Lstat(path)
			if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > young && !held(path) {
				found = append(found, path)
			}
		}
	}
	return found
}

func kill(ctx context.Context, id process.Identity) error {
	if left := opportunity.KillAll(ctx, []process.Identity{id}); len(left) > 0 {
		return fmt.Errorf("end process %d: it is still running", id.PID)
	}
	return nil
}

func removal(paths ...string) func(context.Context) error {
	return func(context.Context) error {
		for _, path := range paths {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("remove what is left: %w", err)
			}
		}
		return nil
	}
}

// forget takes an ended gateway out of the record, with what it left. The lock is
// held.
func forget(ctx context.Context, dir string, g Gateway) error {
	if !kernelserver.Remove(ctx, g.Process, g.Dir) {
		return fmt.Errorf("end the kernels of %v: some are still running", g)
	}
	r, err := read(dir)
	if err != nil {
		return err
	}
	return write(dir, r.without(g))
}

// Clean ends and removes what Leftovers finds, under the lock, so that nothing of
// a host that starts now is taken for a leftover. It returns what is gone.
func Clean(ctx context.Context, dir string) ([]Leftover, error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := prepare(dir); err != nil {
			return nil, err
		}
	}
	// Before the lock is taken, which replaces the note of its last holder.
	noted, err := Leftovers(dir)
	if err != nil || len(noted) == 0 {
		return nil, err
	}
	unlock, err := lock(ctx, dir, "removing what is left behind")
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, err := Leftovers(dir)
	if err != nil {
		return nil, err
	}
	for _, l := range noted {
		if strings.HasPrefix(l.What, "the note of ") {
			found = append(found, l)
		}
	}
	var gone []Leftover
	for _, l := range found {
		if e := l.end(ctx); e != nil {
			err = errors.Join(err, e)
			continue
		}
		gone = append(gone, l)
	}
	return gone, err
}

// LockState is the state of gateway.lock.
type LockState string

// The states of the lock.
const (
	LockFree  LockState = "free"
	LockHeld  LockState = "held"
	LockStuck LockState = "stuck" // held by a process that has not said so for a while
	LockStale LockState = "stale" // free, and a note says that a process holds it
)

// LockHolder is the process that last said that it holds the lock.
type LockHolder struct {
	PID   int
	Doing string
	Beat  time.Time
}

// stuckAfter is the silence after which a holder counts as stuck: ten times the
// pause between its heartbeats, on a loaded machine too.
const stuckAfter = 10 * beatEvery

// Locked looks at the lock. It takes it for an instant.
func Locked(dir string) (LockHolder, LockState) {
	path := filepath.Join(dir, lockFile)
	var h holder
	data, err := file.Read(context.Background(), path, maxRecord)
	if err != nil {
		return LockHolder{}, LockFree
	}
	_ = json.Unmarshal(data, &h) // nothing but news for people
	who := LockHolder{PID: h.Process.PID, Doing: h.Doing, Beat: h.Beat}
	switch {
	case held(path) && !h.Beat.IsZero() && time.Since(h.Beat) > stuckAfter:
		return who, LockStuck
	case held(path):
		return who, LockHeld
	case len(data) > 0:
		return who, LockStale
	default:
		return who, LockFree
	}
}
