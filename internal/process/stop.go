package process

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

const (
	// defaultGrace is what a child gets between TERM and KILL.
	defaultGrace = 2 * time.Second
	// killWait bounds the wait for a child after KILL. The system ends a process
	// in microseconds unless it sleeps in a driver, and then nothing helps.
	killWait = 5 * time.Second
	// killPoll is how often KillAll looks whether processes are gone: they are
	// not our children, so that their end is not reported to us.
	killPoll = 10 * time.Millisecond
)

// StopOptions bounds [Process.Stop].
type StopOptions struct {
	// Grace is the time between the request to end (SIGTERM) and SIGKILL, without
	// that in which the child had no processor or this process stood still, of which
	// there may be 30 s. Zero is 2 s; negative kills at once. On Windows the request is CTRL_BREAK, which
	// needs a console; without one the child is killed at once.
	Grace time.Duration
}

// NotEndedError is returned when processes are still there after SIGKILL.
type NotEndedError struct{ PIDs []int }

// Error names the processes.
func (e *NotEndedError) Error() string {
	return fmt.Sprintf("processes %v are still running after they were killed", e.PIDs)
}

// Stop ends the child and its process group: SIGTERM, the grace period, then
// SIGKILL. It returns nil once the child was reaped, at once if it ended
// before. The end of ctx cuts the grace short, it does not spare the child.
// Several callers may stop the same child.
func (p *Process) Stop(ctx context.Context, o StopOptions) error {
	grace := o.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	if grace > 0 && p.terminate() && endsWithin(ctx, grace, p.done, p.id) {
		return nil
	}
	p.kill()
	if !endsWithin(context.WithoutCancel(ctx), killWait, p.done, p.id) {
		return &NotEndedError{PIDs: []int{p.id.PID}}
	}
	return nil
}

// terminate asks the group to end and reports whether asking is possible.
func (p *Process) terminate() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return true // its end is on the way to done
	}
	if p.ownGroup {
		return terminateGroup(p.id.PID)
	}
	return terminateOne(p.handle)
}

// kill ends the group, or the child alone when it shares the host's group.
func (p *Process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	if p.ownGroup {
		killGroup(p.id.PID)
	}
	// An error means that it ended just now, which wait will tell.
	_ = p.handle.Kill()
}

// KillAll kills the processes with these identities, waits until they are gone
// or ctx ends, and returns those that are not known to be. A process that has ended is
// left alone, whoever has its number now; so is one that cannot be looked at, until it can.
func KillAll(ctx context.Context, ids []Identity) []Identity {
	left := slices.Clone(ids)
	ticker := time.NewTicker(killPoll)
	defer ticker.Stop()
	for {
		left = slices.DeleteFunc(left, killOne)
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return left
		case <-ticker.C:
		}
	}
}

// EndMarked ends what has a mark, also what begins meanwhile. The end of ctx ends that: the
// error is a [*NotEndedError] with what could not be killed, or came faster than it was.
func EndMarked(ctx context.Context, m Mark) error {
	for {
		left, err := Marked(m)
		if err != nil || len(left) == 0 {
			return err
		}
		if ctx.Err() != nil {
			e := &NotEndedError{}
			for _, id := range left {
				e.PIDs = append(e.PIDs, id.PID)
			}
			return e
		}
		KillAll(ctx, left)
	}
}

// killOne kills the process with this identity, and reports whether it has ended by
// now. The handle is taken before the check: on Linux it is a pidfd, which
// stays with its process when the number moves on.
func killOne(id Identity) bool {
	h, err := os.FindProcess(id.PID)
	if err == nil {
		defer func() { _ = h.Release() }()
		if Alive(id) {
			_ = h.Kill() // what was not killed is still there, and reported so
			return false
		}
	}
	return Ended(id)
}
