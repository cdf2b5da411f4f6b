package tool

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/messages"
)

// app is what the commands share: the console, and the flags of all of them.
type app struct {
	*console.Console
	dir   string // the folder of tools, "" for the default
	alone bool
	json  bool
}

// oneTool is the argument of a command about one tool.
func oneTool(name string) console.Arguments {
	return console.Arguments{Least: 1, Most: 1, Wants: name + " takes the id of one tool; coppice tool list shows them"}
}

// launcherOptions are those for the folder that was named: by --tools, or by the
// environment. Otherwise it is that of the server that runs, so that the tools are those
// which are kept warm.
func (a *app) launcherOptions() launcher.Options {
	o := launcher.Options{Dir: a.dir, Env: a.Env}
	if r := a.record(); r != nil && o.Dir == "" && a.Getenv("COPPICE_TOOLS") == "" {
		o.Dir = r.Tools
	}
	return o
}

// toolbox opens the folder of tools.
func (a *app) toolbox() (*launcher.Toolbox, error) { return launcher.OpenToolbox(a.launcherOptions()) }

// commands are those in a text that have to be told which folder of tools is meant.
var commands = regexp.MustCompile(`coppice tool (?:list|new(?: ID)?|(?:setup|validate) \w(?:[\w.-]*\w)?)\b`)

// here repeats --tools behind the commands in a text, where it was given: without it they
// would be about other tools.
func (a *app) here(text string) string {
	if a.dir == "" {
		return text
	}
	return commands.ReplaceAllStringFunc(text, func(command string) string { return command + " --tools " + forShell(a.dir) })
}

// failure gives an error about tools, of a launcher or a server, its exit code, and
// shows its hint.
func (a *app) failure(err error) error {
	told, ok := errors.AsType[*messages.ToolError](err)
	if answer, is := errors.AsType[*client.Error](err); is {
		told, ok = &messages.ToolError{Kind: messages.ToolErrorKind(answer.Code), Message: answer.Message, Hint: answer.Hint}, true
	}
	switch {
	case console.Decided(err):
		return err
	case errors.Is(err, launcher.ErrOptions), errors.Is(err, launcher.ErrID):
		return console.OptionsError(err)
	case ok && told.Kind == messages.ToolErrorNotFound:
		return &console.Exit{Code: console.Usage, Err: a.withHint(told)}
	case ok:
		return &console.Exit{Code: console.Raised, Err: a.withHint(told)}
	default:
		return err
	}
}

func (a *app) withHint(e *messages.ToolError) error {
	if e.Hint == "" {
		return e
	}
	return errors.New(e.Message + "\n  " + a.here(e.Hint))
}

// serverTime bounds the question whether a server answers.
const serverTime = 2 * time.Second

// server returns the client of the server that runs for this folder of tools, nil when
// none does. What it asks is asked once: without an answer the command fails.
func (a *app) server(ctx context.Context, dir string) *client.Client {
	record := a.record()
	if record == nil || record.Tools != dir {
		return nil
	}
	c, err := client.New(client.Options{URL: record.URL, Token: record.Token, Socket: record.Socket, Patience: -1})
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	if h, err := c.ToolsHealth(ctx); err != nil || !h.OK {
		c.Close()
		return nil
	}
	return c
}

// record is what the server that runs says of itself; nil when none does, or none is to be
// used.
func (a *app) record() *client.Record {
	if a.alone {
		return nil
	}
	path, err := client.RecordPath(client.FindOptions{Env: a.Env})
	if err != nil {
		return nil
	}
	record, there, err := client.ReadRecord(path)
	if err != nil || !there || !record.Runs() {
		return nil // a file that cannot be read is that of no server that runs
	}
	return &record
}

// launcher starts a launcher for one command; end ends it.
func (a *app) launcher(ctx context.Context) (l *launcher.Launcher, end func(), err error) {
	l, err = launcher.Start(ctx, a.launcherOptions())
	if err != nil {
		return nil, nil, a.failure(err)
	}
	return l, func() {
		a.Ending(func(ctx context.Context) {
			if report := l.Shutdown(ctx); !report.Clean() {
				a.Err.Lines("coppice: some tools did not end")
			}
		})
	}, nil
}
