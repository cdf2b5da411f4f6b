package cli

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/manual"
	"github.com/coppice-run/coppice/cmd/internal/version"
)

// manualCommand is for whoever packs the program; the help does not list it.
func manualCommand() *cobra.Command {
	var date string
	var cmd *cobra.Command
	cmd = console.Command{
		Use:   "manual DIR",
		Short: "Write the manual pages into a folder",
		Long: `Write the manual pages of all commands and help topics into a folder, which is made if
it is missing. They are of the day of the commit that the program was built from, or of
--date, and are the same bytes each time.`,
		Args: console.Arguments{Least: 1, Most: 1},
		Run: func(_ context.Context, args []string) error {
			v := version.Read()
			if date == "" {
				date = v.Date
			}
			day, err := time.Parse(time.RFC3339, date)
			if err != nil && date != "" {
				return console.Usagef("--date must be a time such as 2026-11-22T12:00:00Z, not %q", date)
			}
			if err != nil { // nothing is known of the source: the first day that there is
				day = time.Unix(0, 0)
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // a manual is for everyone
				return err
			}
			return manual.Write(args[0], cmd.Root(), manual.Options{Version: v.Version, Date: day})
		},
	}.Make()
	cmd.Flags().StringVar(&date, "date", "", "the day that the pages are of (default: that of the commit)")
	cmd.Hidden = true
	return cmd
}
