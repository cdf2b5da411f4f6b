package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// drainTime is how long calls that run may go on, unless it is said.
const drainTime = 30 * time.Second

// drainFirst returns a context for a server that ends a while after ctx, or after a request
// for it: once its node is drained, or once that has taken as long as it may, or when the
// process is to end at once. drained is called when the server has ended, and joins what
// drains. A server that is in no fleet ends with ctx.
func (a *app) drainFirst(ctx context.Context, m *membership) (serving context.Context, drained func()) {
	if m == nil {
		return ctx, func() {}
	}
	a.Gently()
	serving, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ended, done := make(chan struct{}), make(chan struct{})
	go func() { // ends once the server has
		defer close(done)
		select {
		case <-ctx.Done():
		case <-m.asked:
		case <-ended:
			return
		}
		a.drain(ctx, m, ended)
		end(context.Cause(ctx))
	}()
	return serving, func() {
		close(ended)
		<-done
		end(nil)
	}
}

// drain drains a node, as long as that may take.
func (a *app) drain(ctx context.Context, m *membership, ended <-chan struct{}) {
	draining, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), m.f.drain, fmt.Errorf("--drain-timeout is %s", m.f.drain))
	defer stop()
	defer context.AfterFunc(a.Hard, stop)()
	over := make(chan struct{})
	defer close(over)
	go func() { // ends with the function
		select {
		case <-ended:
			stop()
		case <-over:
		}
	}()
	a.Err.Lines("coppice: draining: what runs may go on for " + m.f.drain.String() + "; another signal ends it at once")
	others := make(chan error, 1)
	go func() { others <- m.tenants.drain(draining) }() // joined below
	if err := errors.Join(m.node.Drain(draining), <-others); err != nil {
		a.Err.Lines("coppice: " + err.Error() + "; they are cancelled")
	}
}

func (a *app) drainCommand() *cobra.Command {
	return console.Command{
		Use:   "drain",
		Short: "Have the node of a fleet that runs begin nothing more, and end",
		Long: `Ask the coppice-fleet serve that runs to drain and to end, as SIGTERM does, and wait for
its end: before a machine is taken away, or as the preStop hook of a container.

A node that drains begins nothing more, and says which other node to ask. Calls that run go
on for as long as the --drain-timeout of the server says; then they are cancelled, and
whoever waits for one learns so. A session in which nothing runs ends at once, and its next
call begins at another node without waiting for anything, with nothing in memory. Workspaces
end with their node; programs in them that somebody follows are waited for as calls are.`,
		Example: `  coppice drain`,
		Errors:  console.ServerFailure,
		Run:     func(ctx context.Context, _ []string) error { return a.askToDrain(ctx) },
	}.Make()
}

// askToDrain asks the server that runs to drain, and waits for its end.
func (a *app) askToDrain(ctx context.Context) error {
	path, err := client.RecordPath(client.FindOptions{Env: a.Env})
	if err != nil {
		return err
	}
	return a.WithServer(func(c *client.Client) error {
		r, _, err := client.ReadRecord(path)
		if err != nil {
			return err
		}
		node, err := c.Drain(ctx)
		if told, is := errors.AsType[*client.Error](err); is && told.Code == "not_found" {
			return fmt.Errorf("the server at %s is no node of a fleet; to end it, send it an interrupt", c.URL())
		}
		if err != nil {
			return err
		}
		a.Err.Lines("coppice: node " + node + " is draining")
		look := time.NewTicker(100 * time.Millisecond)
		defer look.Stop()
		for r.Runs() {
			select {
			case <-look.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		a.Out.Lines("node " + node + " has ended")
		return nil
	})
}
