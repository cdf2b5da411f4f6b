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

	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/process"
)

// copied is a child that a session forked off itself, or that an earlier host has made. It
// has no parent that would report how it ended: it is watched by its identity.
type copied struct {
	end *ending
	// kept says that it was begun by an earlier host, and is no copy.
	kept bool
	// The host's own read ends of the pipes behind stdout and stderr. They are
	// closed when the end is known.
	stdout, stderr *pipeEnd

	mu sync.Mutex
	id process.Identity // guarded by mu
}

// Copies hands a session that waits for them the descriptors of copies of itself,
// one for each control group (nil: that of the session), and returns the copies, in
// the same order. For each, either [Child.Known], with its pid, or [Child.Never], when
// it was not made, has to be called.
func (c *Child) Copies(groups []*cgroup.Group) ([]*Child, error) {
	made := make([]*Child, 0, len(groups))
	for _, g := range groups {
		one, err := c.handOver(g)
		if err != nil {
			for _, m := range made {
				m.Never(err)
				m.Close()
			}
			return nil, fmt.Errorf("make a copy of a session: %w", err)
		}
		made = append(made, one)
	}
	return made, nil
}

// handOver makes the descriptors of one copy and gives the session its ends.
func (c *Child) handOver(g *cgroup.Group) (_ *Child, err error) {
	seat, err := newSeat()
	if err == nil {
		err = seat.in(g)
	}
	if err != nil {
		return nil, err
	}
	b := &copied{end: newEnding()}
	var own *pipes
	defer func() {
		if err != nil {
			seat.close()
			b.close()
			own.close()
		}
	}()
	if c.keeps {
		if own, err = newPipes(seat); err != nil {
			return nil, err
		}
	}
	if b.stdout, err = newPipeEnd(seat.theirs[stdoutRead]); err != nil {
		return nil, err
	}
	if b.stderr, err = newPipeEnd(seat.theirs[stderrRead]); err != nil {
		return nil, err
	}
	if err := c.sendRights(syscall.UnixRights(seat.theirs...)); err != nil {
		return nil, err
	}
	seat.handedOver()
	made, err := newChild(seat.main, seat.control, b)
	if err == nil && own != nil {
		made.pipes.Store(own)
		made.keeps = true
	}
	return made, err
}

// HandOver hands a session that waits for it a descriptor of a file, which stays the
// caller's.
func (c *Child) HandOver(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return fmt.Errorf("hand over a file: %w", err)
	}
	var sent error
	if err := raw.Control(func(fd uintptr) { sent = c.sendRights(syscall.UnixRights(int(fd))) }); err != nil {
		return fmt.Errorf("hand over a file: %w", err)
	}
	return sent
}

// sendRights sends one byte on Main, with descriptors attached.
func (c *Child) sendRights(rights []byte) error {
	var sent error
	err := c.raw.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), []byte{'\n'}, rights, nil, 0)
		return !errors.Is(sent, syscall.EAGAIN) && !errors.Is(sent, syscall.EINTR)
	})
	if err == nil {
		err = sent
	}
	if err != nil {
		return fmt.Errorf("hand over descriptors: %w", err)
	}
	return nil
}

func (b *copied) ended() *ending { return b.end }

func (b *copied) identity() process.Identity {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.id
}

// known records the identity, and watches the process from then on.
func (b *copied) known(pid int) {
	id, err := process.Identify(pid)
	if err != nil {
		id = process.Identity{PID: pid}
	}
	b.mu.Lock()
	again := b.id.PID != 0
	b.id = id
	b.mu.Unlock()
	if !again {
		go b.watch(id) // ends with the process; Done is its join
	}
}

// watch tells the end of the process.
func (b *copied) watch(id process.Identity) {
	awaitEnd(id)
	killGroupOf(id.PID)
	b.end.set(&LostError{PID: id.PID, Copy: !b.kept}, b.drain(context.Background()))
	b.close()
}

// never says that there is no process.
func (b *copied) never(err error) {
	if b.identity().PID != 0 {
		return
	}
	b.end.set(err, Output{})
	b.close()
}

func (b *copied) close() {
	for _, p := range []*pipeEnd{b.stdout, b.stderr} {
		if p != nil {
			p.close()
		}
	}
}

func (b *copied) signal(_ context.Context, sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("send %v: %w", sig, errors.ErrUnsupported)
	}
	return b.kill(number, false)
}

// kill sends a signal to the process, or to its group.
func (b *copied) kill(number syscall.Signal, group bool) error {
	id := b.identity()
	if process.Ended(id) {
		return nil
	}
	if !process.Alive(id) {
		return fmt.Errorf("send %v to process %d: whether it is the one cannot be seen now", number, id.PID)
	}
	return killGroupOrOne(id.PID, number, group)
}

func (b *copied) stop(ctx context.Context, o process.StopOptions) error {
	return stopGroup(ctx, o, b.end, b.identity, func(_ context.Context, number syscall.Signal) error { return b.kill(number, true) })
}

func (b *copied) drain(context.Context) Output {
	return Output{Stdout: b.stdout.drain(), Stderr: b.stderr.drain()}
}

// pollEnd looks for a process until it is gone.
func pollEnd(id process.Identity) {
	ticker := time.NewTicker(orphanPoll)
	defer ticker.Stop()
	for !process.Ended(id) {
		<-ticker.C
	}
}
