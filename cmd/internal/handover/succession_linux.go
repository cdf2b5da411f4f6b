package handover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/internal/process"
)

// A successor waits so long before it asks a server again that was busy, and then twice as
// long each time, up to the most: each time, requests are held for a moment.
const (
	again = 100 * time.Millisecond
	most  = 5 * time.Second
)

// Succession is the way to take a server over that runs. Make it with [Ask], and end it with
// Close.
type Succession struct {
	w     wire
	who   process.Identity
	given Given
	files []*os.File
	owner bool // the server has left
}

// Ask asks the server that runs whether it would leave to this process. Nothing has moved
// then. The error matches [ErrNone] when it hears no successors, [ErrEnded] when it has
// ended, or is a [*RefusedError].
func Ask(ctx context.Context, o SuccessorOptions) (*Succession, error) {
	me, err := process.Identify(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("ask the server that runs: %w", err)
	}
	dir, err := openFolder(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", SocketFile(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), o.PID))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrNone
	case err != nil:
		return nil, fmt.Errorf("ask the server that runs: %w", err)
	}
	s := &Succession{w: wire{c.(*net.UnixConn)}}
	if err := s.ask(ctx, o, me); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Succession) ask(ctx context.Context, o SuccessorOptions, me process.Identity) error {
	var err error
	if s.who, err = s.w.peer(); err != nil {
		return err
	}
	if s.who.PID != o.PID || o.Start != "" && s.who.Start != o.Start {
		return refusedf("process %d hears successors, and process %d is recorded", s.who.PID, o.PID)
	}
	if err := s.w.send(message{Kind: hello, Version: Version, Program: o.Program, Knows: o.Knows, Token: o.Token, PID: me.PID, Start: me.Start}); err != nil {
		return err
	}
	m, err := s.w.receive(ctx)
	if err != nil {
		return err
	}
	s.files = m.files
	switch {
	case m.Kind == refused:
		return &RefusedError{Reason: m.Reason}
	case m.Kind != offer || m.Given == nil || len(m.files) == 0:
		return refusedf("the server (%s) answers in words that this program (%s) does not know", m.Program, o.Program)
	case m.Version != Version:
		return refusedf("the server (%s) speaks version %d of the handover, and this program (%s) version %d", m.Program, m.Version, o.Program, Version)
	}
	s.given = *m.Given
	return nil
}

// Given is what the server says of itself.
func (s *Succession) Given() Given { return s.given }

// Files are the listeners, which Close closes.
func (s *Succession) Files() []*os.File { return s.files }

// Take has the server leave, and returns what it knows of what it left, which the caller
// closes. nil: it has ended without that. While it is busy, it is asked again; tell hears
// with what, once for each thing. The error is a [*RefusedError], and the server goes on, or
// that of ctx.
func (s *Succession) Take(ctx context.Context, tell func(why string)) (*os.File, error) {
	told := ""
	for wait := again; ; wait = min(2*wait, most) {
		var m message
		err := s.w.send(message{Kind: take})
		if err == nil {
			m, err = s.w.receive(ctx)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, ErrEnded):
			if err := process.Await(ctx, s.who); err != nil {
				return nil, err
			}
			s.owner = true
			return nil, nil //nolint:nilnil // there is nothing
		case err != nil:
			return nil, err
		}
		switch m.Kind {
		case left:
			s.owner = true
			if len(m.files) == 0 {
				return nil, nil //nolint:nilnil // as above
			}
			return m.files[0], nil
		case refused:
			m.close()
			return nil, &RefusedError{Reason: m.Reason}
		case busy:
			m.close()
		default:
			m.close()
			return nil, refusedf("the server answers in words that this program does not know")
		}
		if m.Reason != told {
			told = m.Reason
			tell(told)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Owner reports whether the server has left, and everything belongs to this process.
func (s *Succession) Owner() bool { return s.owner }

// Taken says that this process serves. The server before it is over then.
func (s *Succession) Taken() {
	_ = s.w.send(message{Kind: mine}) // one that was killed meanwhile is over, too
}

// Close ends the succession. Before Taken it may be called only when this process holds
// nothing any more: the server takes everything back once it has ended.
func (s *Succession) Close() {
	for _, f := range s.files {
		_ = f.Close()
	}
	s.files = nil
	_ = s.w.conn.Close()
}
