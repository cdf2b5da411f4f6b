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
}

// listener is the first descriptor of a child besides the standard ones.
const listener = 3

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
func (o Options) confined(dir private, p process.Options) (_ process.Options, started func(), err error) {
	rules := o.Rules
	if rules.Inside() {
		return p, func() {}, fmt.Errorf("a gateway does not run on the rung %s: its port and its kernels' sockets are not in that kernel; use another rung", rules.Level)
	}
	if o.walled() {
		// What decides how kernels start is theirs to read alone.
		rules.Read = append(slices.Clip(rules.Read), string(dir))
		rules.Write = append(slices.Clip(rules.Write), dir.sockets(), dir.ipython(), dir.scratch(), dir.empty())
	}
	c, started, err := rules.Wrap(sandbox.Command{Path: p.Path, Args: p.Args, Dir: p.Dir, Files: p.ExtraFiles})
	if err != nil {
		return p, started, fmt.Errorf("confine the gateway: %w", err)
	}
	p.Path, p.Args, p.ExtraFiles = c.Path, c.Args, c.Files
	if rules.Level > sandbox.Off {
		p.Confine = rules.Confine // by no name: it is the only one with this directory
	}
	return p, started, nil
}

// place is where a gateway listens: a port that was free just now or, where it can open none
// itself, a socket of ours that it is given.
type place struct {
	port int
	file *os.File // nil: it opens the port
}

func newPlace(ctx context.Context, given bool) (place, error) {
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
	if given {
		if p.file, err = tcp.File(); err != nil {
			return place{}, fmt.Errorf("hand over a port: %w", err)
		}
	}
	return p, nil
}

// files are those that the gateway gets from descriptor 3 on.
func (p place) files() []*os.File {
	if p.file == nil {
		return nil
	}
	return []*os.File{p.file}
}

// close closes our copy.
func (p place) close() {
	if p.file != nil {
		_ = p.file.Close() // the gateway has its own
	}
}
