package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/term"
)

// execFlags are those of exec.
type execFlags struct {
	terminal bool
	detach   bool
	env      []string
	labels   []string
	cwd      string
	timeout  console.Time
}

func (a *app) execCommand() *cobra.Command {
	var f execFlags
	cmd := console.Command{
		Use: "exec WORKSPACE [FLAGS] -- PROGRAM [ARG]...", Short: "Run a program in a workspace", Errors: console.ServerFailure,
		Long: `Run a program in a workspace, behind its walls and within its limits. Standard input
goes to it, what it prints comes here, and its exit code is that of the command: 128 and
the number of the signal for one that was ended by INT, KILL or TERM.

With -t it has a terminal, which is this one: an editor or a shell works as it does here.
Without, the first interrupt is one for the program, and a second one ends it. With
--detach it runs on when the command has ended, which prints its id: "coppice workspace
show" tells how it does.

What the program has started ends with it, also in the background (nohup server &),
unless it has left its process group: setsid server & runs on until the workspace ends.`,
		Example: `  coppice workspace exec etl -- ls -l
  coppice workspace exec etl -t -- bash
  sort < names | coppice workspace exec etl -- uniq -c`,
		Args: console.Arguments{Least: 2, Most: console.Any, Wants: "exec wants the name of a workspace and a program: coppice workspace exec etl -- ls -l"},
		Run: func(ctx context.Context, args []string) error {
			n, err := f.program(args[1:])
			if err != nil {
				return err
			}
			if f.terminal && a.keyboard() == nil {
				return console.Usagef("-t wants a terminal, and standard input and output are none")
			}
			return a.WithServer(func(c *client.Client) error { return a.exec(ctx, c, f, args[0], n) })
		},
	}.Make()
	flags := cmd.Flags()
	flags.BoolVarP(&f.terminal, "terminal", "t", false, "give it a terminal, which is this one")
	flags.BoolVarP(&f.detach, "detach", "d", false, "let it run on, and print its id")
	flags.StringArrayVar(&f.env, "env", nil, "a variable of its environment, NAME=VALUE; may be repeated")
	flags.StringArrayVar(&f.labels, "label", nil, "a label, NAME=VALUE; may be repeated")
	flags.StringVar(&f.cwd, "cwd", "", "its working directory, relative to the folder of the workspace (default: that)")
	flags.Var(&f.timeout, "timeout", "end it after so long: seconds, or a time such as 5m (default: never)")
	return cmd
}

// program is what the flags ask for.
func (f execFlags) program(args []string) (n client.NewProcess, err error) {
	n = client.NewProcess{Args: args, Cwd: f.cwd, Timeout: time.Duration(f.timeout).Seconds(), Input: !f.detach}
	switch {
	case f.timeout < 0:
		return n, console.Usagef("--timeout must not be negative; leave it out for none")
	case f.detach && f.terminal:
		return n, console.Usagef("--detach and -t exclude each other")
	}
	if n.Env, err = pairs("env", f.env); err != nil {
		return n, err
	}
	n.Labels, err = pairs("label", f.labels)
	return n, err
}

// keyboard is the terminal of the command; nil: it has none.
func (a *app) keyboard() *os.File {
	f, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(f) || !a.Out.Terminal {
		return nil
	}
	return f
}

// exec runs a program to its end.
func (a *app) exec(ctx context.Context, c *client.Client, f execFlags, workspace string, n client.NewProcess) (err error) {
	out := io.Writer(a.Out)
	if f.terminal {
		screen := a.keyboard()
		columns, rows := term.Size(screen)
		n.Terminal = &client.TerminalSize{Columns: columns, Rows: rows}
		out = a.Out.W // what runs there draws on the whole terminal
	}
	p, err := c.StartProcess(a.Hard, workspace, n) // Ctrl-C is the program's, also one that comes before its name does
	if err != nil {
		return err
	}
	if f.detach {
		if a.json {
			return a.WriteJSON(p)
		}
		a.Out.Lines(p.ID)
		return nil
	}
	r := running{app: a, c: c, workspace: workspace, id: p.ID, out: out}
	if f.terminal {
		restore, err := term.Raw(a.keyboard())
		if err != nil {
			return errors.Join(err, r.end())
		}
		defer restore()
		defer watchSize(func() { r.resize(a.keyboard()) })()
	}
	return r.follow(ctx)
}

// running is a program that runs.
type running struct {
	*app
	c             *client.Client
	workspace, id string
	out           io.Writer
}

// giveUp bounds the last requests of a command that ends.
const giveUp = 5 * time.Second

// end ends the program, for a command that ends before it.
func (r running) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	_, err := r.c.EndProcess(ctx, r.workspace, r.id, 0)
	return err
}

// resize tells the program of the size of the terminal.
func (r running) resize(screen *os.File) {
	columns, rows := term.Size(screen)
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	_ = r.c.ResizeProcess(ctx, r.workspace, r.id, client.TerminalSize{Columns: columns, Rows: rows}) // it may have ended
}

// follow passes input and output on until the program has ended.
func (r running) follow(ctx context.Context) error {
	reads, cancel := context.WithCancel(r.Hard)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		err := r.c.SignalProcess(reads, r.workspace, r.id, "INT")
		if _, answered := errors.AsType[*client.Error](err); err != nil && !answered && reads.Err() == nil { // else it has ended
			r.Err.Lines(fmt.Sprintf("coppice: the interrupt did not reach the program (%v): press Ctrl-C again to end it", err))
		}
	})
	defer stop()
	// A read of standard input cannot be cancelled: the goroutine ends with the input, or
	// with the process.
	go r.input(reads)
	for e, err := range r.c.ProcessEvents(reads, r.workspace, r.id, 0) {
		switch {
		case err != nil && r.Hard.Err() != nil:
			return errors.Join(&console.Exit{Code: console.Cancelled}, r.end())
		case err != nil:
			return err
		case e.Type == client.ProcessStderr:
			_, err = r.Err.Write(e.Data)
		case e.Type == client.ProcessGap:
			r.Err.Lines("coppice: some of the output came too fast, and was lost")
		case e.Type == client.ProcessEnd && e.Exit != nil:
			return ended(e.Exit)
		default:
			_, err = r.out.Write(e.Data)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("write what it prints: %w", err), r.end())
		}
	}
	return fmt.Errorf("the server does not know how the process %s ended", r.id)
}

// input passes standard input on to its end.
func (r running) input(ctx context.Context) {
	if _, err := io.Copy(r.c.ProcessInput(ctx, r.workspace, r.id), r.In); err == nil {
		_ = r.c.CloseProcessInput(ctx, r.workspace, r.id) // it may have ended
	}
}

// signals are the exit codes of programs that were ended by one, as shells have them.
var signals = map[string]int{"interrupt": 130, "killed": 137, "terminated": 143}

// ended is the exit of the command.
func ended(e *client.ProcessExit) error {
	var why error
	if e.Reason != "" {
		why = errors.New("the program was ended: " + e.Reason)
	}
	code := e.Code
	if e.Incomplete != "" { // whoever reads the output would take it for the whole
		code = max(code, console.Raised)
		why = errors.Join(why, errors.New("some of its output is missing: "+e.Incomplete))
	}
	if e.Signal != "" {
		if code = signals[e.Signal]; code == 0 {
			code = console.Raised
		}
		if why == nil && code == console.Raised {
			why = errors.New("the program was ended by a signal: " + e.Signal)
		}
	}
	if code == 0 && why == nil {
		return nil
	}
	return &console.Exit{Code: code, Err: why}
}
