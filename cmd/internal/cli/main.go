package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/cmd/internal/term"
	"github.com/coppice-run/coppice/internal/home"
)

// Main runs the command line args, without the name of the program, and returns
// the exit code. env is the whole environment, as os.Environ has it. One Main
// runs at a time: signals are the process's.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	a := newApp(stdin, stdout, stderr, env)
	stops := watchSignals()
	defer stops.close()
	a.stops = stops
	a.out.onBroken = func() { stops.interrupt(errReaderGone) }

	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteContextC(stops.soft)
	return a.report(cmd, err)
}

// app is what the commands share. Its fields are set before a command runs and
// do not change.
type app struct {
	in       io.Reader
	out, err *output
	env      []string
	stops    *stops
}

func newApp(stdin io.Reader, stdout, stderr io.Writer, env []string) *app {
	a := &app{in: stdin, out: &output{w: stdout}, err: &output{w: stderr}, env: env}
	for _, o := range []*output{a.out, a.err} {
		if o.terminal = term.IsTerminal(o.w); o.terminal {
			o.width = term.Width(o.w)
		}
	}
	return a
}

// style is how text for an output looks.
func (a *app) style(o *output) render.Style {
	return render.Style{Terminal: o.terminal, Colour: o.terminal && a.colours(), Width: o.width, Images: render.ProtocolOf(a.getenv)}
}

// colours says whether the environment allows colours: https://no-color.org.
func (a *app) colours() bool { return a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" }

// getenv returns the value of a variable, "" when it is not set.
func (a *app) getenv(name string) string { return home.Lookup(a.env, name) }

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "coppice",
		Short: "Python sessions that stay alive",
		Long: `Coppice runs Python in sessions that stay alive: Jupyter kernels under a
supervision tree. A kernel that dies grows back once; a call always ends with
one result that says what happened, to the code and to the variables.

  coppice run -c 'print(6 * 7)'    runs code, with any Python 3.9 or newer
  coppice setup                    makes an environment with Jupyter kernels
  coppice doctor                   says what is wrong, and how to mend it`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failure(cmd.Help())
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.Version = readVersion().String()
	root.SetVersionTemplate("coppice {{.Version}}\n")
	root.SetHelpCommand(helpCommand())
	root.AddCommand(topics()...)
	root.AddCommand(a.runCommand(), a.notebookCommand(), a.exportCommand(), a.replCommand(), a.artifactCommand(), a.demoCommand(), a.setupCommand(), a.envCommand(), a.doctorCommand(), a.helpersCommand(), a.gatewayCommand(), a.mcpCommand(), a.toolCommand(), a.serveCommand(), a.sessionsCommand(), a.topCommand(), a.benchCommand(), a.versionCommand())
	complete(root)
	return root
}

// report writes what went wrong, if anything did, and returns the exit code.
func (a *app) report(cmd *cobra.Command, err error) int {
	code := a.reportError(cmd, err)
	// Who reads the output later would take what is there for the whole.
	if lost := a.out.failure(); lost != nil {
		_, _ = fmt.Fprintf(a.err, "coppice: the output is not complete: %v\n", lost)
		code = max(code, codeRaised)
	}
	return code
}

func (a *app) reportError(cmd *cobra.Command, err error) int {
	if err == nil {
		return codeOK
	}
	if coded, ok := errors.AsType[*codeError](err); ok {
		if coded.err != nil {
			_, _ = fmt.Fprintf(a.err, "coppice: %v\n", coded.err)
		}
		return coded.code
	}
	// What is no error of ours comes from cobra: the command line is wrong.
	_, _ = fmt.Fprintf(a.err, "coppice: %s\nRun '%s --help' for how to use it.\n", mistake(cmd, err.Error()), cmd.CommandPath())
	return codeUsage
}
