package kernelserver

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/sandbox"
)

//go:embed walled.py
var walledScript []byte

// walls is what walled.py is told.
type walls struct {
	// Listener is the descriptor that the gateway serves, Scopes are the bits of Landlock
	// with which each kernel keeps itself from the others. 0: none.
	Listener int    `json:"listener"`
	Scopes   uint64 `json:"scopes"`
	// Calls says that it is handed its connections in place of a listener, since it has a kernel of
	// its own, and is the path there of the socket for calls of the host. "": it is not.
	Calls string `json:"calls"`
}

// listening is the first descriptor of a child besides the standard ones.
const listening = 3

// walled says whether the gateway stands behind walls, where it can open no port.
func (o Options) walled() bool { return o.Rules.Level >= sandbox.Landlock }

// wrapped says whether another program has started the gateway, and waits for it.
func (o Options) wrapped() bool { return o.Rules.Level == sandbox.Bubblewrap }

// inside returns the gateway that bubblewrap has started.
func inside(bwrap process.Identity) (process.Identity, error) {
	children, err := process.Children(bwrap)
	if err == nil && len(children) != 1 {
		err = fmt.Errorf("bubblewrap has %d children", len(children))
	}
	if err != nil {
		return bwrap, fmt.Errorf("find the gateway in its namespaces: %w", err)
	}
	return children[0], nil
}

// confined makes the process of a gateway one under the rules. started, which is never
// nil, is called when it has been started, or will not be.
func (s *Server) confined(o Options, dir private, p process.Options) (_ process.Options, started func(), err error) {
	rules := o.Rules
	if o.walled() {
		// What decides how kernels start is theirs to read alone.
		rules.Read = append(slices.Clip(rules.Read), string(dir))
		rules.Write = append(slices.Clip(rules.Write), dir.sockets(), dir.ipython(), dir.scratch(), dir.empty())
	}
	command := sandbox.Command{Path: p.Path, Args: p.Args, Dir: p.Dir, Files: p.ExtraFiles, Env: p.Env, Bounds: sandbox.Bounds{Files: p.NoFile}}
	if o.wrapped() && p.User != nil {
		command, p.User = command.As(o.Runtime.Path, p.User.UID, p.User.GID, p.User.Groups...), nil
	}
	c, started, err := rules.Wrap(command)
	if err != nil {
		return p, started, fmt.Errorf("confine the gateway: %w", err)
	}
	p.Path, p.Args, p.ExtraFiles = c.Path, c.Args, c.Files
	if rules.Inside() { // where it has its environment
		p.Env, s.removed = c.Env, c.Over
	}
	if rules.Level > sandbox.Off {
		p.Confine = rules.Confine // by no name: it is the only one with this directory
	}
	return p, started, nil
}

// place is where a gateway listens: a port that was free just now or, where it can open none
// itself, a socket of ours that it is given. One that has a kernel of its own listens nowhere.
type place struct {
	port   int      // 0: no one can connect to it
	file   *os.File // nil: it opens the port
	handed *handed  // in place of a port
	stdin  *os.File // goes with handed
}

func newPlace(ctx context.Context, o Options) (place, error) {
	if o.Rules.Inside() {
		h, stdin, err := newHanded()
		return place{handed: h, stdin: stdin}, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return place{}, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return place{}, fmt.Errorf("find a free port: %v is not a TCP address", l.Addr())
	}
	p := place{port: tcp.Addr().(*net.TCPAddr).Port}
	if o.walled() {
		if p.file, err = tcp.File(); err != nil {
			return place{}, fmt.Errorf("hand over a port: %w", err)
		}
	}
	return p, nil
}

// told is the port that the gateway is told to listen on, which without one it does not: 0 would be
// any that is free.
func (p place) told() int { return max(p.port, 1) }

// files are those that the gateway gets from descriptor 3 on.
func (p place) files() []*os.File {
	if p.file == nil {
		return nil
	}
	return []*os.File{p.file}
}

// close closes our copy.
func (p place) close() {
	for _, f := range []*os.File{p.file, p.stdin} {
		if f != nil {
			_ = f.Close() // the gateway has its own
		}
	}
}
