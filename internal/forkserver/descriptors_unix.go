//go:build unix

package forkserver

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/ndjson"
)

// lifeline is that of all sessions that have no other: only the kernel closes it.
var lifeline = sync.OnceValues(NewLifeline)

// life is the lifeline of the sessions.
func (o Options) life() (*Lifeline, error) {
	if o.Lifeline != nil {
		return o.Lifeline, nil
	}
	return lifeline()
}

// The descriptors of a session, in the order in which it expects them.
const (
	_          = iota // main
	_                 // control
	stdoutRead        // of the pipe behind its stdout
	_                 // and its write end
	stderrRead
	_
	seatSize
)

// seat is what a session is given at its start.
type seat struct {
	// main and control are the host's ends; the runtime polls them.
	main, control *os.File
	// theirs are the session's. They are plain numbers, because an os.File would
	// make them non-blocking for the session too.
	theirs []int
}

// newSeat opens the descriptors of a session.
func newSeat() (_ *seat, err error) {
	s := &seat{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, end := range []**os.File{&s.main, &s.control} {
		fds, err := openPair(func(p []int) error {
			pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			copy(p, pair[:])
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("make a socket pair: %w", err)
		}
		s.theirs = append(s.theirs, fds[1])
		if *end, err = polled(fds[0]); err != nil {
			return nil, err
		}
	}
	for range 2 {
		fds, err := openPair(syscall.Pipe)
		if err != nil {
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		s.theirs = append(s.theirs, fds[0], fds[1])
	}
	return s, nil
}

// in has the session enter a control group: the descriptors that move it there
// come after the others. An error closes the seat.
func (s *seat) in(g *cgroup.Group) error {
	if g == nil {
		return nil
	}
	files, err := g.Join()
	if err != nil {
		s.close()
		return err
	}
	defer closeAll(files)
	syscall.ForkLock.RLock() // nothing may be forked before they close on exec
	defer syscall.ForkLock.RUnlock()
	for _, f := range files {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			s.close()
			return fmt.Errorf("open a control group: %w", err)
		}
		syscall.CloseOnExec(fd)
		s.theirs = append(s.theirs, fd)
	}
	return nil
}

// handedOver closes the ends that the session has now.
// of gives the pipes behind stdout and stderr to a user, who may then open them by
// their names (/dev/stdout). An error closes the seat.
func (s *seat) of(u *ndjson.User) error {
	if u == nil {
		return nil
	}
	for _, fd := range s.theirs[stdoutRead:seatSize] {
		if err := syscall.Fchown(fd, u.UID, u.UID); err != nil {
			s.close()
			return fmt.Errorf("give a pipe to user %d: %w", u.UID, err)
		}
	}
	return nil
}

func (s *seat) handedOver() {
	for _, fd := range s.theirs {
		_ = syscall.Close(fd)
	}
	s.theirs = nil
}

func (s *seat) close() {
	s.handedOver()
	for _, f := range []*os.File{s.main, s.control} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// openPair opens two descriptors that no child inherits.
func openPair(open func(p []int) error) ([2]int, error) {
	var p [2]int
	syscall.ForkLock.RLock() // nothing may be forked before both close on exec
	defer syscall.ForkLock.RUnlock()
	if err := open(p[:]); err != nil {
		return p, err
	}
	syscall.CloseOnExec(p[0])
	syscall.CloseOnExec(p[1])
	return p, nil
}

// polled wraps a socket so that reading it waits in the runtime's poller.
func polled(fd int) (*os.File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fd), "session"), nil
}
