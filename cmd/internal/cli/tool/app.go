package tool

import (
	"context"
	"errors"
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

func (a *app) launcherOptions() launcher.Options { return launcher.Options{Dir: a.dir, Env: a.Env} }

// toolbox opens the folder of tools.
func (a *app) toolbox() (*launcher.Toolbox, error) { return launcher.OpenToolbox(a.launcherOptions()) }

// failure gives an error about tools, of a launcher or a server, its exit code, and
// shows its hint.
func failure(err error) error {
	told, ok := errors.AsType[*messages.ToolError](err)
	if answer, is := errors.AsType[*client.Error](err); is {
		told, ok = &messages.ToolError{Kind: messages.ToolErrorKind(answer.Code), Message: answer.Message, Hint: answer.Hint}, true
	}
	switch {
	case console.Decided(err):
		return err
	case errors.Is(err, launcher.ErrOptions):
		return console.UsageError{Err: err}
	case ok && told.Kind == messages.ToolErrorNotFound:
		return &console.Exit{Code: console.Usage, Err: withHint(told)}
	case ok:
		return &console.Exit{Code: console.Raised, Err: withHint(told)}
	default:
		return err
	}
}

func withHint(e *messages.ToolError) error {
	if e.Hint == "" {
		return e
	}
	return errors.New(e.Message + "\n  " + e.Hint)
}

// serverTime bounds the question whether a server answers.
const serverTime = 2 * time.Second

// server returns the client of the server that runs for this folder of tools, nil when
// none does. What it asks is asked once: without an answer the command fails.
func (a *app) server(ctx context.Context, dir string) *client.Client {
	if a.alone {
		return nil
	}
	path, err := client.RecordPath(client.FindOptions{Env: a.Env})
	if err != nil {
		return nil
	}
	record, there, err := client.ReadRecord(path)
	if err != nil || !there || record.Tools != dir || !record.Runs() {
		return nil // a file that cannot be read is that of no server that runs
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

// launcher starts a launcher for one command; end ends it.
func (a *app) launcher(ctx context.Context) (l *launcher.Launcher, end func(), err error) {
	l, err = launcher.Start(ctx, a.launcherOptions())
	if err != nil {
		return nil, nil, failure(err)
	}
	return l, func() {
		a.Ending(func(ctx context.Context) {
			if report := l.Shutdown(ctx); !report.Clean() {
				a.Err.Lines("coppice: some tools did not end")
			}
		})
	}, nil
}
