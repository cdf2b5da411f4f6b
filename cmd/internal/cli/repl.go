package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/repl"
	"github.com/coppice-run/coppice/internal/home"
)

func (a *app) replCommand() *cobra.Command {
	var (
		f            console.HostFlags
		tools        console.ToolDir
		session, cwd string
	)
	cmd := console.Command{
		Use:   "repl",
		Short: "Type cells and see what they show, in a session that stays alive",
		Long: `Type cells and run them in one session.

Enter runs a cell that is complete and else begins a line; Alt-Enter always
begins one, and an empty line ends a block. Tab completes, F1 or Shift-Tab shows
what a name is. Up and Down go through what was run before, also in earlier
screens. Ctrl-O expands what was cut, Ctrl-T shows the supervision tree, PgUp and
PgDn scroll. Ctrl-C interrupts the cell that runs, else empties the text, and
pressed twice leaves; so do Ctrl-D and exit. The session ends with the screen.`,
		Run: func(ctx context.Context, _ []string) error {
			in, isFile := a.In.(*os.File)
			if !isFile || !a.Out.Terminal {
				return console.Usagef("repl needs a terminal; use run for scripts and pipes")
			}
			if err := a.CheckPlace(ctx, f.Python, cwd); err != nil {
				return err
			}
			warm, err := a.Tools(ctx, tools)
			if err != nil {
				return err
			}
			host, err := a.StartHost(ctx, f, console.ColdGateway, coppice.Options{Timeout: coppice.NoTimeout, Launcher: warm})
			if err != nil {
				return err
			}
			defer host.End()
			backend, _ := host.Backend()
			return console.Failure(repl.Run(ctx, repl.Options{
				Session: host.Session(session, coppice.In(cwd)), Backend: backend, Snapshot: host.Snapshot,
				History: a.historyFile(), Colour: a.Colours(), In: in, Out: a.Out.W, Env: a.Env,
			}))
		},
	}.Make()
	f.AddBounded(cmd)
	tools.Add(cmd)
	cmd.Flags().StringVar(&session, "session", "default", "the session to run in")
	cmd.Flags().StringVar(&cwd, "cwd", "", "the working directory of the session (default: this one)")
	return cmd
}

// historyFile is where the cells that were typed are kept, "" when there is no
// home.
func (a *app) historyFile() string {
	place, err := home.Home{Env: a.Env}.Resolve()
	if err != nil {
		return ""
	}
	return place.Join("repl_history.jsonl")
}
