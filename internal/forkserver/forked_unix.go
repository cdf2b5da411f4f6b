//go:build unix

package forkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// orphanPoll is how often a session whose fork server is gone is looked for.
const orphanPoll = 100 * time.Millisecond

// forked is a child of a fork server.
type forked struct {
	server *Server
	end    *ending

	mu sync.Mutex
	id process.Identity // guarded by mu; has no number where the server is inside
	// number is that by which the server knows it; guarded by mu.
	number int
}

func (f *forked) ended() *ending { return f.end }

func (f *forked) inside() bool { return f.server.inside }

func (f *forked) in() int { return f.server.PID() }

func (f *forked) subject() opportunity.Subject { return f.server.Subject() }

func (f *forked) identity() process.Identity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id
}

// known records the identity. The pid is the child's own while it answers.
func (f *forked) known(pid int) {
	if f.server.inside {
		f.numbered(pid)
		return
	}
	id, err := process.Identify(pid)
	if err != nil {
		id = process.Identity{PID: pid}
	}
	f.mu.Lock()
	f.id, f.number = id, pid
	f.mu.Unlock()
}

// numbered takes what the server calls it, which is no number of the host's where the
// server is inside.
func (f *forked) numbered(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.number != 0 {
		return
	}
	f.number = pid
	if !f.server.inside && f.id.PID == 0 {
		f.id.PID = pid
	}
}

// named returns what the server calls it, 0 while that is not known.
func (f *forked) named() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.number
}

func (f *forked) never(error) {} // its fork server says what became of it

func (f *forked) signal(ctx context.Context, sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("send %v: %w", sig, errors.ErrUnsupported)
	}
	return f.kill(ctx, number, false)
}

// kill sends a signal to the process, or to its group.
func (f *forked) kill(ctx context.Context, number syscall.Signal, group bool) error {
	select {
	case <-f.end.done:
		return nil
	default:
	}
	id, named := f.identity(), f.named()
	if named <= 1 {
		return nil // it never said who it is: closing its descriptors is what ends it
	}
	_, err := f.server.order(ctx, ndjson.Request{Type: ndjson.TypeSignal, PID: named, Signal: int(number), Group: group})
	if !errors.Is(err, ErrServerGone) {
		return err
	}
	if f.server.inside {
		return nil // its kernel ends with its server
	}
	if process.Ended(id) {
		return nil
	}
	if !process.Alive(id) {
		return fmt.Errorf("send %v to process %d: whether it is the one cannot be seen now", number, id.PID)
	}
	return killGroupOrOne(id.PID, number, group)
}

func (f *forked) stop(ctx context.Context, o process.StopOptions) error {
	return stopGroup(ctx, o, f.end, f.identity, func(ctx context.Context, number syscall.Signal) error { return f.kill(ctx, number, true) })
}

// How long a process that is asked to end has when it has no processor to end with: in
// multiples of its grace, and at most.
const (
	graceCeilings = 20
	graceMost     = 30 * time.Second
)

// stopGroup ends a process that is not a child of the host: SIGTERM to its group,
// the grace period, SIGKILL.
func stopGroup(ctx context.Context, o process.StopOptions, end *ending, id func() process.Identity, kill func(context.Context, syscall.Signal) error) error {
	grace := o.Grace
	if grace == 0 {
		grace = 2 * time.Second
	}
	if grace > 0 {
		c, done := opportunity.Within(ctx, opportunity.Budget{Opportunity: grace, Ceiling: min(graceCeilings*grace, graceMost)}, opportunity.Processes(id()))
		err := kill(c, syscall.SIGTERM)
		if err == nil {
			select {
			case <-end.done:
			case <-c.Done():
			}
		}
		done()
	}
	const killWait = 5 * time.Second
	c, done := opportunity.Within(context.WithoutCancel(ctx), opportunity.Budget{Opportunity: killWait, Ceiling: graceMost}, opportunity.Processes(id()))
	defer done()
	if err := kill(c, syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-end.done:
		return nil
	case <-c.Done():
		return &process.NotEndedError{PIDs: []int{id().PID}}
	}
}

// used asks the server for the processor time of the process.
func (f *forked) used(ctx context.Context) (time.Duration, error) {
	reply, err := f.server.ask(ctx, ndjson.Request{Type: ndjson.TypeUsed, PID: f.named()})
	if err == nil && reply.Seconds < 0 {
		err = process.ErrNoProcess
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the processor time of a session: %w", err)
	}
	return time.Duration(reply.Seconds * float64(time.Second)), nil
}

func (f *forked) drain(ctx context.Context) Output {
	named := f.named()
	if named == 0 {
		return Output{}
	}
	reply, err := f.server.ask(ctx, ndjson.Request{Type: ndjson.TypeDrain, PID: named})
	if err != nil {
		return Output{} // what is there stays where it is
	}
	return Output{Stdout: reply.Stdout, Stderr: reply.Stderr}
}

// read takes what the server says, until it says nothing more. Then its
// children are orphans.
func (s *Server) read(lines *ndjson.Reader) {
	for {
		line, err := lines.Next()
		if _, ok := errors.AsType[*ndjson.TooLongError](err); ok {
			continue
		}
		if err != nil {
			break
		}
		f, err := ndjson.ParseFrame(line)
		if err != nil {
			continue
		}
		s.frame(f)
	}
	s.mu.Lock()
	s.gone = true
	orphans := make([]*forked, 0, len(s.children)+len(s.forks))
	for _, c := range s.children {
		orphans = append(orphans, c)
	}
	for _, c := range s.forks {
		orphans = append(orphans, c)
	}
	clear(s.children)
	clear(s.forks)
	for n, reply := range s.replies {
		close(reply)
		delete(s.replies, n)
	}
	s.isEmpty()
	s.mu.Unlock()
	if s.inside {
		s.endAll(orphans)
		return
	}
	watch(orphans)
}

// endAll ends the kernel that the server was in, and tells the end of all sessions there: the
// server was its first process.
func (s *Server) endAll(orphans []*forked) {
	_ = s.proc.Stop(context.Background(), process.StopOptions{Grace: -1}) // what survives that is stuck in the system
	<-s.proc.Done()
	for _, c := range orphans {
		c.end.set(&LostError{}, Output{})
	}
}

func (s *Server) frame(f ndjson.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f.Type {
	case ndjson.TypeWarm:
		select {
		case <-s.warm:
		default:
			s.failed = f.Failed
			close(s.warm)
		}
	case ndjson.TypeForked:
		if c := s.forks[f.N]; c != nil {
			delete(s.forks, f.N)
			s.children[f.PID] = c
			c.numbered(f.PID)
		}
	case ndjson.TypeFailed:
		if c := s.forks[f.N]; c != nil {
			delete(s.forks, f.N)
			c.end.set(fmt.Errorf("fork a session: %s", f.Message), Output{})
		}
	case ndjson.TypeExit:
		if c := s.children[f.PID]; c != nil {
			delete(s.children, f.PID)
			c.end.set(exitOf(f), Output{Stdout: f.Stdout, Stderr: f.Stderr})
		}
	default:
		if reply := s.replies[f.N]; reply != nil && f.N != 0 {
			reply <- f
			delete(s.replies, f.N)
		}
	}
	s.isEmpty()
}

// isEmpty tells those who wait for the last child. The caller holds mu.
func (s *Server) isEmpty() {
	if s.empty != nil && (s.gone || len(s.children)+len(s.forks) == 0) {
		close(s.empty)
		s.empty = nil
	}
}

// exitOf reads an exit frame.
func exitOf(f ndjson.Frame) error {
	switch {
	case f.Signal != 0:
		return &process.ExitError{Code: -1, Signal: f.Signal, Name: syscall.Signal(f.Signal).String()}
	case f.Code != 0:
		return &process.ExitError{Code: f.Code}
	default:
		return nil
	}
}

// watch looks for orphans until all are gone. Their parent is now a stranger,
// which learns how they end and keeps it to itself.
func watch(orphans []*forked) {
	ticker := time.NewTicker(orphanPoll)
	defer ticker.Stop()
	var ending sync.WaitGroup
	defer ending.Wait()
	for len(orphans) > 0 {
		left := orphans[:0]
		for _, c := range orphans {
			id := c.identity()
			if !process.Ended(id) {
				left = append(left, c)
				continue
			}
			ending.Go(func() { // together: what one waits for, all do
				killGroupOf(id.PID)
				c.end.set(&LostError{PID: id.PID}, Output{})
			})
		}
		orphans = left
		if len(orphans) > 0 {
			<-ticker.C
		}
	}
}

// killGroupOrOne sends a signal to a process that lives, or to the group that it leads. One
// that does not lead a group yet has started nothing: then the signal is for it alone.
func killGroupOrOne(pid int, number syscall.Signal, group bool) error {
	err := error(syscall.ESRCH)
	if group {
		err = syscall.Kill(-pid, number)
	}
	if errors.Is(err, syscall.ESRCH) {
		err = syscall.Kill(pid, number)
	}
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %v to process %d: %w", number, pid, err)
	}
	return nil
}
