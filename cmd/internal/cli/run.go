package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/ipynb"
)

// The bounds of --timeout, in seconds.
const (
	minTimeout = 1
	maxTimeout = 600
)

// hostFlags are those of every command that starts a host.
type hostFlags struct {
	backend string
	python  string
	// start and grace are the flags of Options.StartTimeout and InterruptGrace.
	start, grace string
}

func (f *hostFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.backend, "backend", "auto", "how kernels are made: auto, gateway or runner")
	cmd.Flags().StringVar(&f.python, "python", "", "the Python interpreter to use (default: the active or managed environment)")
	cmd.Flags().StringVar(&f.start, "start-timeout", "", "how long a kernel, or the process that it comes from, may take to start, without the time that it waits for a processor: 90s, 2m or seconds (default: COPPICE_START_TIMEOUT, else 2m)")
	cmd.Flags().StringVar(&f.grace, "interrupt-grace", "", "how long interrupted code has to stop before its kernel is ended, without the time that it waits for a processor (default: COPPICE_INTERRUPT_GRACE, else 1.5s)")
}

// options fills in what the flags say; g are those of the gateway backend. The error
// is one of usage.
func (f *hostFlags) options(g coppice.GatewayOptions, o coppice.Options) (coppice.Options, error) {
	b, err := coppice.BackendNamed(f.backend, g, coppice.RunnerOptions{})
	if err != nil {
		return o, usageError{err}
	}
	o.Backend, o.Python = b, f.python
	for _, t := range []struct {
		flag, text string
		to         *time.Duration
	}{{"start-timeout", f.start, &o.StartTimeout}, {"interrupt-grace", f.grace, &o.InterruptGrace}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = home.Duration(t.text); err != nil {
			return o, usagef("--%s: %v", t.flag, err)
		}
	}
	return o, nil
}

// coldGateway starts no kernel that nothing has asked for: a command has one session.
var coldGateway = coppice.GatewayOptions{WarmKernels: -1}

// runFlags are those of run.
type runFlags struct {
	hostFlags
	code    []string
	session string
	cwd     string
	timeout string
	reset   bool
	mode    string
	kernel  string
	record  string
	json    bool
	events  bool
	expand  bool
	blocks  bool
	tools   toolDir
	stdin   bool
	local   bool
	keep    bool // the session was named, and outlives the command
	own     bool // a flag asks for what only a host of the command's own has
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [-c CODE]... [FILE.py|FILE.ipynb|-]",
		Short: "Run Python code, cell by cell",
		Long: `Run the code of each -c, then that of a file, in one session.

A .py file is split into cells at its "# %%" lines; what follows the signs is
the cell's title. Of a notebook the code cells are run, and the file is not
changed; "coppice notebook run" keeps what they show. The first cell that does
not complete ends the run.

The exit code is 0 when all is well, 1 when a cell raised, 2 when the command
line is wrong, 124 on a timeout, 130 when cancelled, and 70 when the kernel was
lost or never reached.

Without --session nothing is left behind. A session that is named is one of the
"coppice serve" that runs, if one does: it lives there. Otherwise, and with
--local, --backend, --python, --kernel, --kernel-mode, --record, --start-timeout
or --interrupt-grace, it is kept, with its variables, in a gateway that the
commands of this user share, for an hour after its last use; "coppice gateway
stop" ends it. The runner backend keeps none.

COPPICE_START_TIMEOUT and COPPICE_INTERRUPT_GRACE are heard where their flags are
not given; "coppice help environment" lists all variables.`,
		Example: `  coppice run -c 'x = 40' -c 'x + 2'
  coppice run analysis.py --timeout 60
  echo 'print(1)' | coppice run - --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("run takes one file, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.keep = cmd.Flags().Changed("session")
			f.own = f.local || slices.ContainsFunc([]string{"backend", "python", "kernel", "record", "kernel-mode", "start-timeout", "interrupt-grace"}, cmd.Flags().Changed)
			file := ""
			if len(args) == 1 {
				file = args[0]
			}
			return a.run(cmd.Context(), f, file)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.code, "code", "c", nil, "code to run, as one cell; may be repeated")
	flags.StringVar(&f.session, "session", "default", "the session to run in; a named one is kept for the next command, with the gateway backend")
	flags.StringVar(&f.cwd, "cwd", "", "the working directory of the session (default: this one)")
	flags.StringVar(&f.timeout, "timeout", "", "seconds for the whole run, 1 to 600 (default: no limit)")
	flags.BoolVar(&f.reset, "reset", false, "start the session anew before the first cell")
	flags.StringVar(&f.mode, "kernel-mode", string(messages.ModeSession), "how long the kernel lives: session or per-call")
	flags.StringVar(&f.kernel, "kernel", "", "the kernelspec of the session's kernel, of any language (default python3)")
	flags.BoolVar(&f.json, "json", false, "print the result as one JSON object")
	flags.BoolVar(&f.events, "events", false, "print each event as a line of JSON, the result last")
	flags.StringVar(&f.record, "record", "", "append the cells and what they show to a notebook")
	flags.BoolVar(&f.expand, "expand", false, "show the code of each cell, whole tracebacks and more of data")
	flags.BoolVar(&f.blocks, "blocks", false, "draw each cell as a block once all have ended: its code and the end of its output")
	flags.BoolVar(&f.local, "local", false, "do not use a coppice serve that runs")
	flags.BoolVar(&f.stdin, "stdin", false, "answer input() with the lines of standard input (on a terminal it is asked anyway)")
	f.add(cmd)
	f.tools.add(cmd)
	return cmd
}

func (a *app) run(ctx context.Context, f runFlags, file string) error {
	switch {
	case f.json && f.events:
		return usagef("--json and --events exclude each other")
	case f.blocks && (f.json || f.events):
		return usagef("--blocks is for people; leave it out with --json and --events")
	}
	timeout, err := parseTimeout(f.timeout)
	if err != nil {
		return err
	}
	mode := messages.KernelMode(f.mode)
	if mode != messages.ModeSession && mode != messages.ModePerCall {
		return usagef("--kernel-mode must be session or per-call, not %q", f.mode)
	}
	cells, err := a.readCells(ctx, f.code, file)
	if err != nil {
		return err
	}
	starting := a.startProgress("starting", f.json || f.events)
	defer starting.done()
	if c := a.server(f); c != nil {
		defer c.Close()
		return a.runOnServer(ctx, c, f, file, cells, timeout, starting)
	}
	recording, err := f.recording()
	if err != nil {
		return err
	}
	g := coldGateway
	g.KernelName = f.kernel
	o := coppice.Options{KernelMode: mode, Sinks: recording, Launcher: f.tools.launcher(), OnEvent: func(e messages.Lifecycle) {
		starting.stage(stageOf(e), "")
	}}
	if timeout == 0 {
		timeout = coppice.NoTimeout // a script takes as long as it takes; a host's default is for agents
	}
	if f.keep && mode == messages.ModeSession {
		g.Shared, o.KeepSessions = true, true
	}
	host, err := a.startHost(ctx, f.hostFlags, g, o)
	if err != nil {
		return err
	}
	if backend, _ := host.Backend(); f.keep && !host.Keeps() {
		a.err.lines(fmt.Sprintf("coppice: the session %q ends with this command, since the %s backend keeps none; coppice serve keeps sessions of both, coppice setup makes what the gateway backend needs", f.session, backend))
	}
	session := host.Session(f.session, coppice.In(f.cwd))
	result, err := a.call(ctx, session, coppice.Request{Cells: cells, Timeout: timeout, Reset: f.reset, Input: a.answers(f.stdin, file)}, f, starting)
	starting.done()
	ending := a.startProgress("ending the kernel", f.json || f.events)
	host.end()
	ending.done()
	_, wrong := errors.AsType[*coppice.RequestError](err)
	switch {
	case wrong:
		return usageError{err}
	case err != nil:
		return &codeError{code: codeLost, err: err}
	}
	if code := outcomeCode(result.Outcome); code != codeOK {
		return &codeError{code: code}
	}
	return nil
}

// recording is the sink that --record asks for.
func (f runFlags) recording() ([]sinks.Attachment, error) {
	if f.record == "" {
		return nil, nil
	}
	if !notebook.IsPath(f.record) {
		return nil, usagef("--record wants an .ipynb file, not %s", f.record)
	}
	r, err := ipynb.Open(ipynb.Options{Path: f.record})
	if err != nil {
		return nil, usageError{err}
	}
	return []sinks.Attachment{r.Attachment()}, nil
}

// call makes one call and writes what comes of it, in the form that the flags
// ask for. Nothing is written when the request is wrong.
func (a *app) call(ctx context.Context, session *coppice.Session, r coppice.Request, f runFlags, starting *progress) (messages.Result, error) {
	if f.json {
		result, err := session.Execute(ctx, r)
		if _, refused := errors.AsType[*messages.NotStartedError](err); err != nil && !refused {
			return result, err
		}
		starting.done()
		return result, a.writeJSON(result)
	}
	return a.writeEvents(session.Stream(ctx, r), r, f, starting)
}

// writeEvents writes the events of a call, in the form that the flags ask for.
func (a *app) writeEvents(events iter.Seq2[messages.Event, error], r coppice.Request, f runFlags, starting *progress) (messages.Result, error) {
	write := a.eventWriter()
	switch {
	case f.json:
		write = func(e messages.Event) error {
			if final, ok := e.(messages.Final); ok {
				return a.writeJSON(final.Result)
			}
			return nil
		}
	case f.blocks:
		write = func(e messages.Event) error {
			if final, ok := e.(messages.Final); ok {
				a.out.lines(render.CellView(render.RunOptions{Style: a.style(a.out), Expand: f.expand, Cells: r.Cells, Timeout: r.Timeout}, final.Result)...)
			}
			return nil
		}
	case !f.events:
		drawing := render.NewRun(render.RunOptions{Style: a.style(a.out), Expand: f.expand, Cells: r.Cells, Timeout: r.Timeout, Now: time.Now})
		write = func(e messages.Event) error {
			if _, asks := e.(messages.InputRequest); asks && a.err.terminal && r.Input != nil {
				return nil // who answers has shown it
			}
			a.out.print(drawing.Event(e))
			return nil
		}
	}
	var result messages.Result
	for e, err := range events {
		if err != nil {
			return result, err
		}
		starting.done()
		if err := write(e); err != nil {
			return result, err
		}
		if final, ok := e.(messages.Final); ok {
			result = final.Result
		}
	}
	return result, nil
}

// writeJSON writes v as one line.
func (a *app) writeJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// eventWriter writes each event as a line of JSON.
func (a *app) eventWriter() func(messages.Event) error {
	var line []byte
	return func(e messages.Event) error {
		var err error
		if line, err = messages.AppendEvent(line[:0], e); err != nil {
			return err
		}
		_, err = a.out.Write(append(line, '\n'))
		return err
	}
}

// parseTimeout reads --timeout; "" is none.
func parseTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || seconds < minTimeout || seconds > maxTimeout {
		return 0, usagef("--timeout must be a number of seconds from %d to %d, not %q", minTimeout, maxTimeout, text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// stageOf says in words what a change in the tree means to somebody who waits,
// or "".
func stageOf(e messages.Lifecycle) string {
	c, ok := e.(messages.ChildChanged)
	if !ok || c.To != messages.ChildStarting {
		return ""
	}
	switch c.Kind {
	case "server":
		if c.Key != "kernel-gateway" {
			return "starting Python"
		}
		return "starting the Kernel Gateway"
	case "kernel":
		return "starting a kernel"
	default:
		return ""
	}
}
