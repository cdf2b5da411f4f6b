package coppice

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/bash"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
)

// How many commands may run at once, those of all sessions together, and how many
// more may wait.
const (
	maxCommands    = 64
	waitedCommands = 4096
)

// maxCommandID is the longest Command.ID, in bytes.
const maxCommandID = 128

// Command is a shell command. It needs no Python and leaves no state: each is a
// shell of its own, without a terminal and without input.
type Command struct {
	// Script is what the shell runs, a command or several lines: bash from the PATH of
	// Options.Env, or sh where there is no bash.
	Script string
	// Cwd is the working directory; a relative one is relative to that of this
	// process. "": that of this process.
	Cwd string
	// Env is set for the command, on top of what kernels inherit of Options.Env.
	Env map[string]string
	// Timeout bounds the command and its wait for a place. 0: Options.Timeout;
	// NoTimeout: none.
	Timeout time.Duration
	// Session names the conversation that the command belongs to, in its result, in
	// its events and in the audit log. Commands of one session share nothing and run
	// at the same time.
	Session string
	// Owner is the agent or tenant that runs it, see [Request.Owner].
	Owner string
	// ID is the id of the call in events, logs and the audit log: at most 128 bytes
	// without control characters, and not that of a command that still runs. "":
	// [messages.NewID] makes one.
	ID string
	// OnEvent hears the events of the command while it runs, from the goroutine that
	// called [Host.Command]. While it does not return, the producer of the output is
	// held back. The result is not among them. nil: no one hears them.
	OnEvent func(messages.Event)
}

// Command runs a shell command, with the rights of this process, and returns when it
// has ended: with what it printed, in order, and its exit code. What it leaves in the
// background is ended with it, and what has a session of its own (setsid) with the host. It needs [Options.Bash]. When ctx ends, the command is
// interrupted, and the result says so. It is never run twice, whatever
// [Options.Replay] says. Any goroutine may call it.
//
// The error is a *[RequestError] for a command that cannot be run, and else that of
// [Session.Execute]. What the command did is the result's to say: one that exits with
// another code than 0 has the outcome error, and no error stands beside it.
func (h *Host) Command(ctx context.Context, c Command) (messages.Result, error) {
	if c.OnEvent == nil {
		return told(h.command(ctx, c))
	}
	var result messages.Result
	for e, err := range events(ctx, func(ctx context.Context, to sinks.Sink) (messages.Result, error) { return h.command(ctx, c, to) }) {
		if err != nil {
			return result, err
		}
		if final, ok := e.(messages.Final); ok {
			result = final.Result
			continue
		}
		c.OnEvent(e)
	}
	return told(result, nil)
}

// command makes the call of a command.
func (h *Host) command(ctx context.Context, c Command, extra ...sinks.Sink) (messages.Result, error) {
	exec := messages.Execute{
		ID: c.ID, Key: messages.SessionKey{Session: c.Session}, Owner: c.Owner, Cells: []messages.Cell{{Code: c.Script}},
		Timeout: c.Timeout, Mode: messages.ModePerCall, Env: c.Env,
	}
	if exec.ID == "" {
		exec.ID = messages.NewID()
	}
	began := h.begin(&exec)
	cwd, err := cleanCwd(c.Cwd)
	exec.Key.Cwd = cwd
	if ctx == nil {
		err = errNoContext
	}
	if err == nil {
		err = h.checkCommand(c)
	}
	if err != nil {
		return refused(exec, err), err
	}
	if _, taken := h.commands.LoadOrStore(exec.ID, struct{}{}); taken {
		err := &RequestError{"id", fmt.Sprintf("a command with the id %q runs already; give each one of its own", exec.ID)}
		return refused(exec, err), err
	}
	defer h.commands.Delete(exec.ID)
	return h.perform(ctx, call{gateway: h.system.Ref(bash.Name), exec: exec, began: began}, extra...)
}

// checkCommand refuses what no shell should see.
func (h *Host) checkCommand(c Command) error {
	switch {
	case !h.o.Bash:
		return &RequestError{"command", "this host runs no commands; set Options.Bash"}
	case strings.TrimSpace(c.Script) == "":
		return &RequestError{"command", "there is no command; set Command.Script"}
	case strings.ContainsRune(c.Script, 0):
		return &RequestError{"command", "the command holds a NUL character, which no shell can take"}
	case !utf8.ValidString(c.Script):
		return &RequestError{"command", "the command is not valid UTF-8"}
	case len(c.ID) > maxCommandID || !utf8.ValidString(c.ID) || strings.ContainsFunc(c.ID, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return &RequestError{"id", fmt.Sprintf("the id is not a text of at most %d bytes without control characters", maxCommandID)}
	}
	return Request{Timeout: c.Timeout, Env: c.Env}.check()
}

// bashSpec is the part of the tree that runs shell commands. Their owner needs an
// interpreter, which is looked for when none is known by the first command.
func (h *Host) bashSpec() supervisor.Spec {
	h.owner.Ask(h.anyPython)
	ko := kernel.Options{Backend: bash.New(bash.Options{Env: h.o.Env, Owner: &h.owner}), InterruptGrace: h.o.InterruptGrace, HeartbeatEvery: -1}
	actor := gateway.New(gateway.Options{
		Name: bash.Name, StopTimeout: ko.StopTimeout(),
		Strategy: gateway.Policy{MaxKernels: maxCommands, MaxWaiting: waitedCommands}.Strategy(),
		NewKernel: func(k gateway.KernelSpec) supervisor.Behaviour {
			o := ko
			o.Key = k.Key
			return kernel.New(o)
		},
	})
	return supervisor.Spec{Key: bash.Name, Kind: gateway.Kind, New: func() supervisor.Behaviour { return actor }}
}

// anyPython returns the path of an interpreter, "" where there is none.
func (h *Host) anyPython(ctx context.Context) string {
	site := h.site()
	if _ = site.Look(ctx); site.Found == nil { // which packages it has does not matter
		return ""
	}
	return site.Found.Path
}
