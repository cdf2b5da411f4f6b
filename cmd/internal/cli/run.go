package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/ipynb"
)

// runFlags are those of run.
type runFlags struct {
	console.HostFlags
	code    []string
	session string
	// workspace is that of the session at a server, "" for none.
	workspace string
	cwd       string
	timeout   string
	reset     bool
	mode      string
	env       []string
	kernel    string
	record    string
	json      bool
	events    bool
	expand    bool
	blocks    bool
	quiet     bool
	tools     console.ToolDir
	stdin     bool
	local     bool
	keep      bool   // the session was named, and outlives the command
	own       bool   // a flag asks for what only a host of the command's own has
	alone     string // the first such flag, but for local; "" for none
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	var cmd *cobra.Command
	cmd = console.Command{
		Use:   "run [-c CODE]... [FILE.py|FILE.ipynb|-]",
		Short: "Run Python code, cell by cell",
		Long: `Run the code of each -c, then that of a file, in one session.

A .py file is split into cells at its "# %%" lines; what follows the signs is
the cell's title. Of a notebook the code cells are run, and the file is not
changed; "coppice notebook run" keeps what they show. The first cell that does
not complete ends the run.

The exit code is 0 when all is well, 1 when a cell raised, 2 when the command
line is wrong or --record could not write everything, 124 on a timeout, 130 when
cancelled, and 70 when the kernel was lost or never reached.

Without --session nothing is left behind. A session that is named is one of the
"coppice serve" that runs, if one does: it lives there. Otherwise, and with
--local, --backend, --python, --kernel, --kernel-mode, --record, --start-timeout,
--interrupt-grace, --isolation and the like, or one of --max-..., it is kept, with its variables, in a gateway that the
commands of this user share, for an hour after its last use; "coppice gateway
stop" ends it. The runner backend and a gateway that someone else runs
(COPPICE_PYTHON_GATEWAY_URL) keep none.

--timeout does not count the start of Python, but for a session that is named,
where it counts everything: another command may use that session, which is waited
for.

COPPICE_START_TIMEOUT, COPPICE_ISOLATION, COPPICE_MAX_MEMORY and others are read
where their flags are not given, but not by a server that runs already: it has its
own. "coppice help environment" lists all variables.`,
		Example: `  coppice run -c 'x = 40' -c 'x + 2'
  coppice run analysis.py --timeout 60
  coppice run -q -c 'print("a,b")' > table.csv
  echo 'print(1)' | coppice run - --json`,
		Args: console.Arguments{Most: console.Any},
		Run: func(ctx context.Context, args []string) error {
			f.keep = cmd.Flags().Changed("session")
			cmd.Flags().Visit(func(flag *pflag.Flag) {
				if f.alone == "" && (slices.Contains(alone, flag.Name) || strings.HasPrefix(flag.Name, "isolation") || strings.HasPrefix(flag.Name, "max-")) {
					f.alone = "--" + flag.Name
				}
			})
			f.own = f.local || f.alone != "" || f.Given()
			file := ""
			if len(args) > 1 {
				return console.Usagef("run takes one file, not %d; a script has no arguments: give it values with --env NAME=VALUE", len(args))
			}
			if len(args) == 1 {
				file = args[0]
			}
			return a.run(ctx, f, file)
		},
	}.Make()
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.code, "code", "c", nil, "code to run, as one cell; may be repeated")
	flags.StringVar(&f.session, "session", "default", "the session to run in; a named one is kept for the next command, with the gateway backend")
	flags.StringVar(&f.workspace, "workspace", "", "the workspace of the session, at the coppice serve that runs (see coppice workspace)")
	flags.StringVar(&f.cwd, "cwd", "", "the working directory of the session (default: this one, or the folder of the workspace)")
	flags.StringVar(&f.timeout, "timeout", "", "how long the whole run may take, 1 to 600 s: seconds, or a time such as 5m (default: no limit)")
	flags.BoolVar(&f.reset, "reset", false, "start the session anew before the first cell")
	flags.StringVar(&f.mode, "kernel-mode", string(messages.ModeSession), "how long the kernel lives: session or per-call")
	flags.StringArrayVar(&f.env, "env", nil, "an environment variable for the time of this run, NAME=VALUE: a session that is kept has what it had again afterwards; may be repeated")
	flags.StringVar(&f.kernel, "kernel", "", "the kernelspec of the session's kernel, of any language (default python3)")
	flags.BoolVar(&f.json, "json", false, "print the result as one JSON object")
	flags.BoolVar(&f.events, "events", false, "print each event as a line of JSON, the result last")
	flags.StringVar(&f.record, "record", "", "append the cells and what they show to a notebook")
	flags.BoolVar(&f.expand, "expand", false, "show the code of each cell, whole tracebacks and more of data")
	flags.BoolVar(&f.blocks, "blocks", false, "draw each cell as a block once all have ended: its code and the end of its output")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print what the code shows and nothing around it: what it prints and its values to standard output, errors to standard error")
	flags.BoolVar(&f.local, "local", false, "do not use a coppice serve that runs")
	flags.BoolVar(&f.stdin, "stdin", false, "answer input() with the lines of standard input (on a terminal it is asked anyway)")
	f.AddBounded(cmd)
	f.tools.Add(cmd)
	return cmd
}

// check returns what --timeout says, 0 for none, and refuses flags that do not go
// together.
func (f runFlags) check() (timeout time.Duration, err error) {
	switch mode := messages.KernelMode(f.mode); {
	case f.json && f.events:
		return 0, console.Usagef("--json and --events exclude each other")
	case f.blocks && (f.json || f.events):
		return 0, console.Usagef("--blocks is for people; leave it out with --json and --events")
	case f.quiet && (f.json || f.events || f.blocks):
		return 0, console.Usagef("--quiet and --json, --events or --blocks exclude each other")
	case f.workspace != "" && (!f.keep || f.own):
		return 0, console.Usagef("--workspace needs --session, and a coppice serve: it does not go with --local and the flags that stand for it")
	case mode != messages.ModeSession && mode != messages.ModePerCall:
		return 0, console.Usagef("--kernel-mode must be session or per-call, not %q", f.mode)
	}
	return console.ParseTimeout(f.timeout)
}

func (a *app) run(ctx context.Context, f runFlags, file string) error {
	timeout, err := f.check()
	if err != nil {
		return err
	}
	env, err := variables(f.env)
	if err != nil {
		return err
	}
	cells, err := a.readCells(ctx, f.code, file)
	if err != nil {
		return err
	}
	starting := a.StartProgress("starting", f.json || f.events || f.quiet)
	defer starting.Done()
	if c := a.server(f); c != nil {
		defer c.Close()
		return a.runOnServer(ctx, c, f, file, cells, env, timeout, starting)
	}
	if f.workspace != "" {
		return console.ServerFailure(fmt.Errorf("%w; a workspace is at one: start it in another terminal", client.ErrNoServer))
	}
	return a.runHere(ctx, f, file, cells, env, timeout, starting)
}

// variables reads what --env says. A value is never repeated: it may be a secret.
func variables(list []string) (map[string]string, error) {
	env := make(map[string]string, len(list))
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, console.Usagef("--env must be NAME=VALUE: one has no name, or no equals sign")
		}
		env[name] = value
	}
	return env, nil
}

// runHere makes the call in a session of a host of the command's own.
func (a *app) runHere(ctx context.Context, f runFlags, file string, cells []messages.Cell, env map[string]string, timeout time.Duration, starting *console.Progress) error {
	if _, err := home.WorkingDir(f.cwd); err != nil { // before anything is started for it
		return console.UsageError{Err: err}
	}
	recorder, err := f.recorder()
	if err != nil {
		return err
	}
	var recording []sinks.Attachment
	if recorder != nil {
		recording = append(recording, recorder.Attachment())
	}
	tools, err := a.Tools(ctx, f.tools)
	if err != nil {
		return err
	}
	mode := messages.KernelMode(f.mode)
	g := console.ColdGateway
	g.KernelName = f.kernel
	o := coppice.Options{KernelMode: mode, Sinks: recording, Launcher: tools, OnEvent: func(e messages.Lifecycle) {
		starting.Stage(console.StageOf(e), "")
	}}
	limit := timeout
	if timeout == 0 {
		timeout = coppice.NoTimeout // a script takes as long as it takes; a host's default is for agents
	}
	if f.keep && mode == messages.ModeSession {
		g.Shared, g.KeepSessions = true, true
	}
	host, err := a.StartHost(ctx, f.HostFlags, g, o)
	if err != nil {
		return err
	}
	if f.keep && f.alone != "" {
		a.unused(f)
	}
	if f.keep && !host.Keeps() {
		a.Err.Lines(fmt.Sprintf("coppice: the session %q ends with this command, since %s", f.session, whyNotKept(host.Host)))
	}
	session := host.Session(f.session, coppice.In(f.cwd))
	if f.keep && limit > 0 {
		// Another command may have the session for longer than that. It begins here: a
		// host that takes its time to start has not been interrupted.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	result, err := a.call(ctx, session, coppice.Request{Cells: cells, Timeout: timeout, Reset: f.reset, CallEnv: env, Input: a.Answers(f.stdin, file)}, f, starting)
	starting.Done()
	ending := a.StartProgress("ending the kernel", f.json || f.events || f.quiet)
	host.End()
	ending.Done()
	_, wrong := errors.AsType[*coppice.RequestError](err)
	switch {
	case wrong:
		return console.UsageError{Err: err}
	case err != nil:
		return &console.Exit{Code: console.Lost, Err: err}
	}
	return recorded(recorder, console.EndedBy(result))
}

// recorded is how a call ends that was recorded, or should have been: what its code came
// to says more than a recording that failed, but that is told in any case.
func recorded(r *ipynb.Recorder, ended error) error {
	if r == nil || r.Err() == nil {
		return ended
	}
	lost := fmt.Errorf("the recording is not complete: %w", r.Err())
	if exit, ok := errors.AsType[*console.Exit](ended); ok {
		return &console.Exit{Code: exit.Code, Err: lost}
	}
	return &console.Exit{Code: console.Usage, Err: lost}
}

// alone are flags of run that are for a Python of its own, as those for isolation and limits are.
var alone = []string{"backend", "python", "kernel", "record", "kernel-mode", "start-timeout", "interrupt-grace"}

// unused says of a server that runs why the session is none of its.
func (a *app) unused(f runFlags) {
	c, err := client.Find(client.FindOptions{Env: a.Env})
	if err != nil {
		return // there is none, and nothing to wonder about
	}
	c.Close()
	a.Err.Lines(fmt.Sprintf("coppice: the coppice serve that runs is not used: %s is for a Python of this command's own; give it to coppice serve", f.alone))
}

// whyNotKept says why a host keeps no sessions, and what does.
func whyNotKept(host *coppice.Host) string {
	backend, _ := host.Backend()
	if backend == "gateway" {
		return "a gateway that someone else runs (COPPICE_PYTHON_GATEWAY_URL) keeps none for the next command; coppice serve keeps its sessions there while it runs"
	}
	return "the " + backend + " backend keeps none for the next command; a coppice serve keeps sessions of either backend, and coppice setup makes what the gateway backend needs"
}

// recorder is what --record asks for; nil: nothing.
func (f runFlags) recorder() (*ipynb.Recorder, error) {
	if f.record == "" {
		return nil, nil
	}
	if !notebook.IsPath(f.record) {
		return nil, console.Usagef("--record wants an .ipynb file, not %s", f.record)
	}
	r, err := ipynb.Open(ipynb.Options{Path: f.record})
	if err != nil {
		return nil, &console.Exit{Code: console.Usage, Err: fmt.Errorf("--record: %w; nothing was run", err)}
	}
	return r, nil
}
