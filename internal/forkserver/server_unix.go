//go:build unix

package forkserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/deadline"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pysrc"
)

// Server is a fork server.
type Server struct {
	proc   *process.Process
	stderr *process.Ring
	env    []string // that it was started with
	keeps  bool     // its sessions may outlive the host
	inside bool     // it runs in a kernel of its own, and the process here is what that runs in
	conn   *net.UnixConn
	python string
	warm   chan struct{}     // closed when the server has done what it does once
	failed map[string]string // written before warm is closed

	write sync.Mutex // held while a request is written

	mu       sync.Mutex
	gone     bool                         // the server answers no more
	last     uint64                       // the number of the last request
	forks    map[uint64]*forked           // asked for and not answered
	children map[int]*forked              // by pid, until their exit frame
	replies  map[uint64]chan ndjson.Frame // other requests, by number
	empty    chan struct{}                // closed when the last child is gone; nil while nothing waits for that
	silent   error                        // why it was ended although it had not; nil when it was not
}

// Launch starts a fork server and waits until it can fork. The error is
// ErrNoFork when its interpreter cannot, ErrUnsupported when this system cannot
// pass descriptors, and else says what the interpreter printed last.
func Launch(ctx context.Context, o Options) (*Server, error) {
	o = o.withDefaults()
	args, load, err := pysrc.Program(pysrc.Server, 1, pysrc.Ahead{Preload: o.Preload, Prelude: o.Prelude, Scopes: o.Rules.Scopes(), Code: o.Code})
	if err != nil {
		return nil, err
	}
	life, err := o.life()
	if err != nil {
		return nil, err
	}
	fds, err := openPair(func(p []int) error {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		copy(p, pair[:])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "fork server"), os.NewFile(uintptr(fds[1]), "fork server")
	defer func() { _ = ours.Close(); _ = theirs.Close() }()
	conn, err := net.FileConn(ours) // a duplicate
	if err != nil {
		return nil, fmt.Errorf("use a socket pair: %w", err)
	}
	s := &Server{
		stderr: process.NewRing(process.RingOptions{}), env: o.Env, keeps: o.Lifeline != nil, inside: o.Rules.Inside(), conn: conn.(*net.UnixConn),
		warm: make(chan struct{}), forks: map[uint64]*forked{}, children: map[int]*forked{}, replies: map[uint64]chan ndjson.Frame{},
	}
	p := process.Options{Path: o.Python, Args: args, Env: o.Env, Stderr: s.stderr, NoFile: 1 << 20}
	if s.inside {
		p.Args, p.Stdin, p.Output = pysrc.Standard(args), theirs, life.r
	} else {
		p.Stdout, p.ExtraFiles = s.stderr, []*os.File{theirs, life.r}
	}
	start, started, err := o.confined(p)
	defer started()
	if err == nil {
		s.proc, err = process.Start(start)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = theirs.Close() // or the end of a server that dies at once would not be seen
	bound, done := opportunity.Within(ctx, o.Start, s.Subject())
	err = s.handshake(bound, load)
	done()
	if err != nil {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return nil, errors.Join(err, s.Close(c))
	}
	return s, nil
}

// handshake hands the source over and waits for the server.
func (s *Server) handshake(ctx context.Context, load []byte) error {
	defer deadline.Free(ctx, s.conn.SetDeadline)()
	lines := ndjson.NewSmallReader(s.conn, ndjson.MaxFrame)
	_, err := s.conn.Write(load)
	var line []byte
	if err == nil {
		line, err = lines.Next()
	}
	var f ndjson.Frame
	if err == nil {
		f, err = ndjson.ParseFrame(line)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("start the fork server: %w", context.Cause(ctx))
	case err != nil:
		return s.failure(err)
	case f.Type == ndjson.TypeFailed:
		return fmt.Errorf("%w: %s", ErrNoFork, f.Message)
	case f.Type != ndjson.TypeReady || f.Version != ndjson.Version:
		return fmt.Errorf("start the fork server: it answered %q of version %d, not ready of version %d", f.Type, f.Version, ndjson.Version)
	}
	s.python = f.Python
	// It ends with the server's end of the connection, and then when the last
	// session that was left has: Child.Done is its join.
	go s.read(lines)
	go s.listen() // ends with the process, which Close sees to
	return nil
}

// failure says why the server did not come up, with what it printed.
func (s *Server) failure(err error) error {
	select {
	case <-s.proc.Done():
		if e := s.proc.Err(); e != nil {
			err = e
		}
	case <-time.After(time.Second):
	}
	if tail := s.stderr.Tail(saidMost); len(tail) > 0 {
		return fmt.Errorf("start the fork server: %w, saying %s", err, said(tail, s.env))
	}
	return fmt.Errorf("start the fork server: %w", err)
}

// PID returns the process id of the server.
func (s *Server) PID() int { return s.proc.PID() }

// Identity names the process of the server for good.
func (s *Server) Identity() process.Identity { return s.proc.Identity() }

// Subject is what an answer of the server takes.
func (s *Server) Subject() opportunity.Subject {
	if s.inside { // the process here waits for the kernel that the server runs in
		return opportunity.Tree(s.proc.Identity())
	}
	return opportunity.Processes(s.proc.Identity())
}

// Answers reports whether the server can still be asked for sessions: false from the
// moment in which its connection has ended.
func (s *Server) Answers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.gone
}

// Python returns the version of the interpreter.
func (s *Server) Python() string { return s.python }

// Warm is closed when the server has done what its sessions then share: it has
// imported the modules to preload. It does that when its first session was forked,
// or a moment after its start when none is asked for. A server that ends before
// never gets there.
func (s *Server) Warm() <-chan struct{} { return s.warm }

// Failed says which modules could not be preloaded, and why, once Warm is closed.
func (s *Server) Failed() map[string]string {
	select {
	case <-s.warm:
		return s.failed
	default:
		return nil
	}
}

// Done is closed when the process of the server has ended.
func (s *Server) Done() <-chan struct{} { return s.proc.Done() }

// Err says how it ended, with the last line that it printed.
func (s *Server) Err() error {
	err := s.proc.Err()
	if err == nil {
		return ErrServerGone
	}
	s.mu.Lock()
	silent := s.silent
	s.mu.Unlock()
	if silent != nil {
		return fmt.Errorf("%w: it %w, because it did not answer: %w", ErrServerGone, err, silent)
	}
	if tail := s.stderr.Tail(1); len(tail) > 0 {
		return fmt.Errorf("%w: it %w, saying %q", ErrServerGone, err, tail[0])
	}
	return fmt.Errorf("%w: it %w", ErrServerGone, err)
}

// Fork makes a session's process. It does not wait for it: a caller writes its
// first request to Main at once and learns there whether it worked; a fork that
// failed closes Main, and Child.Err says why. The process is in the control group
// g before it reads its first request; nil: in that of its server. It becomes the user
// u, which only a server whose rules have Users can do; nil: it stays the server's.
func (s *Server) Fork(g *cgroup.Group, u *ndjson.User) (*Child, error) {
	seat, err := newSeat()
	if err == nil {
		err = seat.in(g)
	}
	if err == nil {
		err = seat.of(u)
	}
	if err != nil {
		return nil, err
	}
	var own *pipes
	if s.keeps {
		if own, err = newPipes(seat); err != nil {
			seat.close()
			return nil, err
		}
	}
	f := &forked{server: s, end: newEnding()}
	s.mu.Lock()
	if s.gone {
		s.mu.Unlock()
		seat.close()
		own.close()
		return nil, ErrServerGone
	}
	s.last++
	n := s.last
	s.forks[n] = f
	s.mu.Unlock()
	err = s.send(ndjson.Request{Type: ndjson.TypeFork, N: n, User: u}, syscall.UnixRights(seat.theirs...))
	seat.handedOver()
	if err != nil {
		s.mu.Lock()
		delete(s.forks, n)
		s.mu.Unlock()
		seat.close()
		own.close()
		return nil, fmt.Errorf("%w: %w", ErrServerGone, err)
	}
	c, err := newChild(seat.main, seat.control, f)
	if err != nil {
		own.close()
		return nil, err
	}
	if own != nil {
		c.pipes.Store(own)
		c.keeps = true
	}
	return c, nil
}

// send writes a request with descriptors attached.
func (s *Server) send(r ndjson.Request, rights []byte) error {
	line, err := ndjson.AppendRequest(nil, r)
	if err != nil {
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	n, _, err := s.conn.WriteMsgUnix(line, rights, nil)
	if err != nil {
		return fmt.Errorf("ask the fork server: %w", err)
	}
	if n < len(line) {
		if _, err := s.conn.Write(line[n:]); err != nil {
			return fmt.Errorf("ask the fork server: %w", err)
		}
	}
	return nil
}

// ask sends a request and waits for its answer.
func (s *Server) ask(ctx context.Context, r ndjson.Request) (ndjson.Frame, error) {
	reply := make(chan ndjson.Frame, 1)
	s.mu.Lock()
	if s.gone {
		s.mu.Unlock()
		return ndjson.Frame{}, ErrServerGone
	}
	s.last++
	r.N = s.last
	s.replies[r.N] = reply
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.replies, r.N)
		s.mu.Unlock()
	}()
	if err := s.send(r, nil); err != nil {
		return ndjson.Frame{}, err
	}
	select {
	case f, ok := <-reply:
		if !ok {
			return f, ErrServerGone
		}
		return f, nil
	case <-ctx.Done():
		return ndjson.Frame{}, fmt.Errorf("ask the fork server: %w", context.Cause(ctx))
	}
}

// Close ends the server and returns when its process is gone. Sessions live on.
func (s *Server) Close(ctx context.Context) error {
	err := s.proc.Stop(ctx, process.StopOptions{Grace: -1})
	_ = s.conn.Close()
	if err != nil {
		return fmt.Errorf("end the fork server: %w", err)
	}
	return nil
}

// Empty returns when no session is left, or when ctx ends.
func (s *Server) Empty(ctx context.Context) {
	s.mu.Lock()
	if len(s.children)+len(s.forks) == 0 || s.gone {
		s.mu.Unlock()
		return
	}
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	s.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}
