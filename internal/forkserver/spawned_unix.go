//go:build unix

package forkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/deadline"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pysrc"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// maxDrain bounds what is read of a pipe at once, in bytes.
const maxDrain = 1 << 20

// spawned is a child that was started, not forked.
type spawned struct {
	proc *process.Process
	end  *ending
	// The read ends of the pipes behind stdout and stderr. They are closed by
	// the goroutine that waits for the process, after end is set.
	stdout, stderr *pipeEnd
}

// Spawn starts an interpreter for one session. It returns when the interpreter
// runs and has its source; whether it becomes a session shows on Main. The end of ctx
// before that ends it. The interpreter begins in the
// control group g; nil: in that of the host.
//
// It runs as the user u, for which the rules have to have Users; nil: as the host's.
func Spawn(ctx context.Context, o Options, g *cgroup.Group, u *ndjson.User) (*Child, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if o.Rules.Inside() {
		return nil, fmt.Errorf("%w: sessions on the rung %s are forked by a server in the sandbox; leave NoFork out, and take an interpreter that has os.fork", errors.ErrUnsupported, o.Rules.Level)
	}
	o = o.withDefaults()
	args, load, err := pysrc.Program(pysrc.Session, seatSize, pysrc.Ahead{Code: o.Code})
	if err != nil {
		return nil, err
	}
	life, err := o.life()
	if err != nil {
		return nil, err
	}
	seat, err := newSeat()
	if err != nil {
		return nil, err
	}
	if err := seat.of(u); err != nil {
		return nil, err
	}
	if u != nil {
		o.Env = withUser(o.Env, u)
	}
	s := &spawned{end: newEnding()}
	if s.stdout, err = newPipeEnd(seat.theirs[stdoutRead]); err == nil {
		s.stderr, err = newPipeEnd(seat.theirs[stderrRead])
	}
	if err != nil {
		s.close()
		seat.close()
		return nil, err
	}
	files := seat.files()
	defer closeAll(files)
	own := process.NewRing(process.RingOptions{})
	start, started, err := o.confined(process.Options{
		Path: o.Python, Args: args, Env: o.Env, Stdout: own, Stderr: own, ExtraFiles: append(files, life.r),
		// The lifeline ends its whole group with the host. The signal that package
		// process would use ends it alone, and before the lifeline can.
		OutliveHost: true,
		User:        userOf(u),
	})
	defer started()
	// The filter of these rungs has no clone3, which begins a process in a group.
	late := o.Rules.Level == sandbox.Seccomp || o.Rules.Level == sandbox.User || g != nil && g.Legacy()
	if err == nil && g != nil && !late {
		start.Groups, err = g.Open()
		for _, f := range start.Groups {
			defer func() { _ = f.Close() }()
		}
	}
	if err == nil {
		s.proc, err = process.Start(start)
	}
	if err == nil && g != nil && late { // it has not got its source yet
		if err = g.Take(s.proc.PID()); err != nil {
			_ = s.proc.Stop(context.Background(), process.StopOptions{Grace: -1}) // it never ran any code
		}
	}
	if err != nil {
		s.close()
		seat.close()
		return nil, err
	}
	for _, p := range []*pipeEnd{s.stdout, s.stderr} {
		_ = syscall.SetNonblock(p.fd, true) // os/exec made it blocking; of a pipe, this cannot fail
	}
	go s.wait(own) // ends when the process does; Done is its join
	// One that does not read its source is not waited for longer than ctx says.
	stop := deadline.Past(ctx, seat.main.SetWriteDeadline)
	_, err = seat.main.Write(load)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = s.proc.Stop(context.Background(), process.StopOptions{Grace: -1}) // it cannot be of use, and it tells its end
		seat.close()
		return nil, fmt.Errorf("hand the source to the interpreter: %w", err)
	}
	return newChild(seat.main, seat.control, s)
}

// userOf is whom a process runs as, as package process takes it.
func userOf(u *ndjson.User) *process.User {
	if u == nil {
		return nil
	}
	return &process.User{UID: u.UID, GID: u.UID, Groups: []int{u.Shared}}
}

// withUser points an environment to a user's folder.
func withUser(env []string, u *ndjson.User) []string {
	kept := make([]string, 0, len(env)+2)
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); name != "HOME" && name != "TMPDIR" {
			kept = append(kept, kv)
		}
	}
	return append(kept, "HOME="+u.Folder, "TMPDIR="+u.Folder)
}

func (s *spawned) wait(own *process.Ring) {
	<-s.proc.Done()
	last := s.drain(context.Background())
	last.Stderr += own.String() // what it said before it had its own descriptors
	s.end.set(s.proc.Err(), last)
	s.close()
}

func (s *spawned) close() {
	for _, p := range []*pipeEnd{s.stdout, s.stderr} {
		if p != nil {
			p.close()
		}
	}
}

func (s *spawned) known(int) {}

func (s *spawned) never(error) {}

func (s *spawned) identity() process.Identity { return s.proc.Identity() }

func (s *spawned) ended() *ending { return s.end }

func (s *spawned) signal(_ context.Context, sig os.Signal) error {
	select {
	case <-s.proc.Done():
		return nil
	default:
		return s.proc.Signal(sig)
	}
}

func (s *spawned) stop(ctx context.Context, o process.StopOptions) error {
	if err := s.proc.Stop(ctx, o); err != nil {
		return err
	}
	<-s.end.done
	return nil
}

func (s *spawned) drain(context.Context) Output {
	return Output{Stdout: s.stdout.drain(), Stderr: s.stderr.drain()}
}

// pipeEnd is the host's own read end of a pipe that the session reads too.
// Reading it never waits.
type pipeEnd struct {
	mu sync.Mutex
	fd int // -1 when closed; guarded by mu
}

func newPipeEnd(of int) (*pipeEnd, error) {
	syscall.ForkLock.RLock() // nothing may be forked before it closes on exec
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Dup(of)
	if err != nil {
		return nil, fmt.Errorf("keep the end of a pipe: %w", err)
	}
	syscall.CloseOnExec(fd)
	return &pipeEnd{fd: fd}, nil
}

func (p *pipeEnd) drain() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text []byte
	buf := make([]byte, 16<<10)
	for p.fd >= 0 && len(text) < maxDrain {
		n, err := syscall.Read(p.fd, buf)
		if n <= 0 || err != nil {
			break
		}
		text = append(text, buf[:n]...)
	}
	return string(text)
}

func (p *pipeEnd) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd >= 0 {
		_ = syscall.Close(p.fd)
		p.fd = -1
	}
}

// files turns the session's ends into files, which are closed in their place.
func (s *seat) files() []*os.File {
	files := make([]*os.File, len(s.theirs))
	for i, fd := range s.theirs {
		files[i] = os.NewFile(uintptr(fd), "session")
	}
	s.theirs = nil
	return files
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
