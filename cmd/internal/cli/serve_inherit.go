package cli

import (
	"context"
	"io"
	"math"
	"os"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// inheritance is what a server goes on with: that of another process, or its own, which that
// one did not take. A nil one is nothing.
type inheritance struct {
	token, cwd string
	listeners  httpserver.Inherited
	left       *os.File      // what was written down; nil: nothing
	known      *httpapi.Left // the same, as it is read; nil: nothing
	// await has the other process leave; nil: this one has.
	await func(ctx context.Context) error
	// owns says that the sessions are this process's; nil: they are.
	owns func() bool
	// serves is called when this process serves, and done at the end.
	serves, done func()
}

// close lets go of it.
func (in *inheritance) close() {
	if in == nil {
		return
	}
	in.listeners.Close()
	in.known.Close()
	if in.left != nil {
		_ = in.left.Close()
	}
	in.done()
}

// begin begins to read what was written down, nil for nothing.
func (in *inheritance) begin(left *os.File) {
	if in.left = left; left != nil {
		in.known = httpapi.ReadLeft(io.NewSectionReader(left, 0, math.MaxInt64))
	}
}

// leftExecutions is what was written down of them; nil: nothing.
func (in *inheritance) leftExecutions() *httpapi.Left {
	if in == nil {
		return nil
	}
	return in.known
}

// leave has a host that would have served and could not leave what it has taken over: to the
// server that goes on then, or, where it keeps sessions, to the next one that is started. Where ctx
// has ended, that is not wanted of a server that nobody is to go on after.
func (in *inheritance) leave(ctx context.Context, host *console.Host) {
	if in == nil && ctx.Err() == nil || in != nil && (in.owns == nil || in.owns()) {
		host.Leave()
	}
}
