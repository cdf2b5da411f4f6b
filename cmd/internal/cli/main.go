package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/cli/notebook"
	"github.com/coppice-run/coppice/cmd/internal/cli/tool"
	"github.com/coppice-run/coppice/cmd/internal/cli/workspace"
	"github.com/coppice-run/coppice/cmd/internal/version"
)

// Main runs the command line args, without the name of the program, and returns
// the exit code. env is the whole environment, as os.Environ has it. One Main
// runs at a time: signals are the process's.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	return MainWith(nil, args, stdin, stdout, stderr, env)
}

// MainWith is Main of a program whose servers can be nodes of a fleet. nil: they cannot.
func MainWith(engines *Directories, args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	a := &app{Console: console.New(stdin, stdout, stderr, env), engines: engines}
	a.Version = version.Read().Version
	stops := a.WatchSignals()
	defer stops.Close()
	return a.execute(stops.Soft, args)
}

// execute runs a command line, and returns the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if stray := strayCommand(root, args); err != nil && stray != "" {
		err = console.Usagef("unknown command %q for %q", stray, cmd.CommandPath())
	}
	return a.report(cmd, console.Stopped(ctx, err))
}

func (a *app) rootCommand() *cobra.Command {
	root := console.Command{
		Use:   "coppice",
		Short: "Python sessions that stay alive",
		Long: `Coppice runs Python in sessions that stay alive: Jupyter kernels under a
supervision tree. A kernel that dies grows back once; a call always ends with
one result that says what happened, to the code and to the variables.

  coppice run -c 'print(6 * 7)'    runs code, with any Python 3.9 or newer
  coppice setup                    makes an environment with Jupyter kernels
  coppice doctor                   says what is wrong, and how to mend it`,
	}.Make()
	if a.engines != nil {
		root.Use = a.engines.Program
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return console.UsageError{Err: err} })
	root.Version = version.Read().String()
	root.SetVersionTemplate("coppice {{.Version}}\n")
	root.SetHelpCommand(helpCommand())
	root.AddCommand(topics()...)
	root.AddCommand(a.runCommand(), notebook.Command(a.Console), notebook.ExportCommand(a.Console), a.replCommand(), a.artifactCommand(), a.demoCommand(), a.setupCommand(), a.envCommand(), a.doctorCommand(), a.helpersCommand(), a.gatewayCommand(), a.mcpCommand(), tool.Command(a.Console), a.serveCommand(), a.drainCommand(), a.sessionsCommand(), workspace.Command(a.Console), a.tokenCommand(), a.topCommand(), a.healthCommand(), a.benchCommand(), a.versionCommand(), manualCommand())
	if a.engines != nil {
		root.AddCommand(a.frontCommand())
	}
	complete(root)
	completionCommand(root)
	return root
}

// report writes what went wrong, if anything did, and returns the exit code.
func (a *app) report(cmd *cobra.Command, err error) int {
	code := a.reportError(cmd, err)
	// Who reads the output later would take what is there for the whole.
	if lost := a.Out.Failure(); lost != nil {
		a.Err.Lines(fmt.Sprintf("coppice: the output is not complete: %v", lost))
		code = max(code, console.Raised)
	}
	return code
}

func (a *app) reportError(cmd *cobra.Command, err error) int {
	if err == nil {
		return console.OK
	}
	if coded, ok := errors.AsType[*console.Exit](err); ok {
		if coded.Err != nil {
			a.Err.Lines(fmt.Sprintf("coppice: %v", coded.Err))
		}
		return coded.Code
	}
	// What is no error of ours comes from cobra: the command line is wrong.
	a.Err.Lines("coppice: "+mistake(cmd, err.Error()), fmt.Sprintf("Run '%s --help' for how to use it.", cmd.CommandPath()))
	return console.Usage
}
