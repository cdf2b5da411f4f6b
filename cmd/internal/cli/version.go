package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/version"
)

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := console.Command{
		Use:   "version",
		Short: "Print the version",
		Run: func(context.Context, []string) error {
			v := version.Read()
			if asJSON {
				return a.WriteJSON(v)
			}
			a.Out.Print("coppice " + v.String() + "\n")
			return nil
		},
	}.Make()
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
