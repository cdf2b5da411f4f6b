package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/top"
)

func (a *app) topCommand() *cobra.Command {
	return console.Command{
		Use:   "top",
		Short: "Watch the sessions of a running server, and act on them",
		Long: `Watch the sessions of the coppice serve that runs: first what needs a person, with
what can be done, then their state, queue, memory, processor time, restarts and last
exit, what the selected one prints, and what happens in the supervision tree. Enter
shows what became of a session, / finds some (state:busy rss:>100M owner:x), shift and a
letter sorts them. Keys interrupt, reset, pin, copy and stop the selected session; ?
lists them. The same is in a browser at the server's address.`,
		Run: func(ctx context.Context, _ []string) error {
			in, isFile := a.In.(*os.File)
			if !isFile || !a.Out.Terminal {
				return console.Usagef("top needs a terminal; coppice sessions list prints the same once")
			}
			c, err := client.Find(client.FindOptions{Env: a.Env})
			if errors.Is(err, client.ErrNoServer) {
				return errors.New("no server runs; start one with coppice serve")
			}
			if err != nil {
				return err
			}
			defer c.Close()
			return top.Run(ctx, top.Options{Server: c, Colour: a.Colours(), In: in, Out: a.Out.W, Env: a.Env})
		},
	}.Make()
}
