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

	served bool
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

// end ends a host: one that would serve and could not leaves the sessions to the server that
// goes on then.
func (in *inheritance) end(host *console.Host) {
	if in != nil && !in.served && (in.owns == nil || in.owns()) {
		host.Leave()
	}
	host.End()
}
