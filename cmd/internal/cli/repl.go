package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/repl"
	"github.com/coppice-run/coppice/internal/home"
)

func (a *app) replCommand() *cobra.Command {
	var (
		f            hostFlags
		tools        toolDir
		session, cwd string
	)
	cmd := &cobra.Command{
		Use:   "repl",
		Short: "Type cells and see what they show, in a session that stays alive",
		Long: `Type cells and run them in one session.

Enter runs a cell that is complete and else begins a line; Alt-Enter always
begins one, and an empty line ends a block. Tab completes, F1 or Shift-Tab shows
what a name is. Up and Down go through what was run before, also in earlier
screens. Ctrl-O expands what was cut, Ctrl-T shows the supervision tree, PgUp and
PgDn scroll. Ctrl-C interrupts the cell that runs, else empties the text, and
pressed twice leaves; so does Ctrl-D. The session ends with the screen.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in, isFile := a.in.(*os.File)
			if !isFile || !a.out.terminal {
				return usagef("repl needs a terminal; use run for scripts and pipes")
			}
			host, err := a.startHost(cmd.Context(), f, coldGateway, coppice.Options{Timeout: coppice.NoTimeout, Launcher: tools.launcher()})
			if err != nil {
				return err
			}
			defer host.end()
			backend, _ := host.Backend()
			return failure(repl.Run(cmd.Context(), repl.Options{
				Session: host.Session(session, coppice.In(cwd)), Backend: backend, Snapshot: host.Snapshot,
				History: a.historyFile(), Colour: a.colours(), In: in, Out: a.out.w, Env: a.env,
			}))
		},
	}
	f.add(cmd)
	tools.add(cmd)
	cmd.Flags().StringVar(&session, "session", "default", "the session to run in")
	cmd.Flags().StringVar(&cwd, "cwd", "", "the working directory of the session (default: this one)")
	return cmd
}

// historyFile is where the cells that were typed are kept, "" when there is no
// home.
func (a *app) historyFile() string {
	place, err := home.Home{Env: a.env}.Resolve()
	if err != nil {
		return ""
	}
	return place.Join("repl_history.jsonl")
}
