package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/messages"
)

// toolFlags are those of every command about tools.
type toolFlags struct {
	tools string
	alone bool
	json  bool
}

func (f *toolFlags) add(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.tools, "tools", "", "the folder of tools (default: COPPICE_TOOLS, else ~/.coppice/tools)")
	flags.BoolVar(&f.alone, "no-server", false, "do not use a coppice serve that runs")
	flags.BoolVar(&f.json, "json", false, "print JSON")
}

// toolDir is the flag of commands whose host may keep tools warm.
type toolDir string

func (d *toolDir) add(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "tool-dir", "", "a folder of tools that code calls as tool.NAME(...), kept warm meanwhile (see coppice tool)")
}

func (d toolDir) launcher() *launcher.Options {
	if d == "" {
		return nil
	}
	return &launcher.Options{Dir: string(d)}
}

func (a *app) toolCommand() *cobra.Command {
	f := &toolFlags{}
	cmd := &cobra.Command{
		Use:   "tool",
		Short: "Make, check and run tools: programs that answer HTTP and stay warm",
		Long: `A tool is a folder with a tool.json and a program in a virtual environment of its
own. The program answers HTTP on the loopback interface; it is started by its
first run and stays warm for the next.

All commands work by themselves. When a coppice serve runs for the same folder,
they ask it, so that a tool that is warm there is used.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return failure(cmd.Help()) },
	}
	f.add(cmd)
	cmd.AddCommand(
		a.toolNewCommand(f), a.toolSetupCommand(f), a.toolValidateCommand(f), a.toolListCommand(f),
		a.toolRunCommand(f, false), a.toolRunCommand(f, true), a.toolLogsCommand(f), a.toolStateCommand(f),
		a.toolPinCommand(f, true), a.toolPinCommand(f, false), a.toolStopCommand(f), a.toolPrewarmCommand(f),
	)
	return cmd
}

// toolArgs wants the id of one tool.
func toolArgs(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s takes the id of one tool; coppice tool list shows them", cmd.Name())
	}
	return nil
}

func (a *app) launcherOptions(f *toolFlags) launcher.Options {
	return launcher.Options{Dir: f.tools, Env: a.env}
}

// toolbox opens the folder of tools.
func (a *app) toolbox(f *toolFlags) (*launcher.Toolbox, error) {
	box, err := launcher.OpenToolbox(a.launcherOptions(f))
	return box, toolFailure(err)
}

// toolFailure gives an error about tools its exit code, and shows its hint.
func toolFailure(err error) error {
	told, ok := errors.AsType[*messages.ToolError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, launcher.ErrOptions):
		return usageError{err}
	case ok && told.Kind == messages.ToolErrorNotFound:
		return &codeError{code: codeUsage, err: withHint(told)}
	case ok:
		return &codeError{code: codeRaised, err: withHint(told)}
	default:
		return failure(err)
	}
}

func withHint(e *messages.ToolError) error {
	if e.Hint == "" {
		return e
	}
	return errors.New(e.Message + "\n  " + e.Hint)
}

// serveFile tells of the server that runs.
func (a *app) serveFile() (string, error) {
	return client.RecordPath(client.FindOptions{Env: a.env})
}

// client returns the client of the server that runs for this folder of tools,
// nil when there is none.
func (a *app) client(ctx context.Context, f *toolFlags, dir string) *toolapi.Client {
	if f.alone {
		return nil
	}
	path, err := a.serveFile()
	if err != nil {
		return nil
	}
	record, there, err := httpserver.ReadRecord(path)
	if err != nil || !there || record.Tools != dir || !record.Runs() {
		return nil // a file that cannot be read is that of no server that runs
	}
	c := toolapi.NewClient(record)
	if !c.Alive(ctx) {
		c.Close()
		return nil
	}
	return c
}

// launcher starts a launcher for one command; end ends it.
func (a *app) launcher(ctx context.Context, f *toolFlags) (l *launcher.Launcher, end func(), err error) {
	l, err = launcher.Start(ctx, a.launcherOptions(f))
	if err != nil {
		return nil, nil, toolFailure(err)
	}
	return l, func() { a.endLauncher(l) }, nil
}
