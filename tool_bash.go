package coppice

import (
	"context"
	"strings"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/bash"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

var bashLimits = limits{def: 30, least: 1, most: 600}

const bashDescription = `Runs a shell command with bash and returns what it prints and its exit code.

- Each call is a shell of its own: cd and variables do not last. Use cwd for another directory.
- There is no terminal and no input. Programs that would ask fail.
- What the command leaves in the background is ended with it.
- Output that is too long is cut; the result names the artifact that has all of it.`

// maxCommands is how many commands of all sessions may run at once, and how many
// more may wait.
const (
	maxCommands    = 64
	waitedCommands = 4096
)

// bashTool runs shell commands.
func (h *Host) bashTool(o ToolOptions) Tool {
	return Tool{
		Name: "bash", Label: "Bash", Description: bashDescription, Destructive: true,
		Schema: render(schema(o.common(
			property{name: "command", schema: text("The command, or a script of several lines."), required: true},
			bashLimits.property("timeout"),
		)...)),
		call: h.callBash,
	}
}

func (h *Host) callBash(ctx context.Context, c ToolCall) (ToolResult, error) {
	var a struct {
		Command *string  `json:"command"`
		Timeout *float64 `json:"timeout"`
		Cwd     string   `json:"cwd"`
		Session string   `json:"session"`
	}
	if err := arguments(c, &a); err != nil {
		return ToolResult{}, err
	}
	switch {
	case a.Command == nil || strings.TrimSpace(*a.Command) == "":
		return ToolResult{}, &ToolError{Argument: "command", Problem: "is missing; pass the shell command as a string"}
	case strings.ContainsRune(*a.Command, 0):
		return ToolResult{}, &ToolError{Argument: "command", Problem: "holds a NUL character, which no shell can take"}
	}
	timeout, err := bashLimits.timeout(a.Timeout)
	if err != nil {
		return ToolResult{}, err
	}
	s, err := h.sessionOf(c, a.Session, a.Cwd)
	if err != nil {
		return ToolResult{}, err
	}
	s.gatewayName = bash.Name
	return toolResult(c.run(ctx, s, Request{Cells: []messages.Cell{{Code: *a.Command}}, Timeout: timeout, Mode: messages.ModePerCall}))
}

// bashSpec is the part of the tree that runs shell commands.
func (h *Host) bashSpec() supervisor.Spec {
	ko := kernel.Options{Backend: bash.New(bash.Options{Env: h.o.Env}), InterruptGrace: h.o.InterruptGrace, HeartbeatEvery: -1}
	actor := gateway.New(gateway.Options{
		Name: bash.Name, StopTimeout: ko.StopTimeout(),
		Strategy: gateway.Policy{MaxKernels: maxCommands, MaxWaiting: waitedCommands}.Strategy(),
		NewKernel: func(k gateway.KernelSpec) supervisor.Behaviour {
			o := ko
			o.Key = k.Key
			return kernel.New(o)
		},
	})
	return supervisor.Spec{Key: bash.Name, Kind: "gateway", New: func() supervisor.Behaviour { return actor }}
}
