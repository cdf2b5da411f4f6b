package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/top"
)

func (a *app) topCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "top",
		Short: "Watch the sessions of a running server, and act on them",
		Long: `Watch the sessions of the coppice serve that runs: their state, queue, memory,
processor time, restarts and last exit, what the selected one prints, and what
happens in the supervision tree. Keys interrupt, reset, pin, copy and stop the
selected session; ? lists them. The same is in a browser at the server's address.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in, isFile := a.in.(*os.File)
			if !isFile || !a.out.terminal {
				return usagef("top needs a terminal; coppice sessions list prints the same once")
			}
			c, err := client.Find(client.FindOptions{Env: a.env})
			if errors.Is(err, client.ErrNoServer) {
				return failure(errors.New("no server runs; start one with coppice serve"))
			}
			if err != nil {
				return failure(err)
			}
			defer c.Close()
			return failure(top.Run(cmd.Context(), top.Options{Server: c, Colour: a.colours(), In: in, Out: a.out.w, Env: a.env}))
		},
	}
}
