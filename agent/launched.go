package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
)

// toldLines is how much of a tool's standard error a model gets to see.
const toldLines = 20

// launchedTools are the tools of the launcher as its folder is now; none without
// a launcher.
func launchedTools(ctx context.Context, l *launcher.Launcher) ([]Tool, error) {
	if l == nil {
		return nil, nil
	}
	list, err := l.Functions(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tools of the launcher: %w", err)
	}
	tools := make([]Tool, 0, len(list))
	for _, f := range list {
		tools = append(tools, Tool{
			Name: launchedPrefix + f.Name, Label: f.Label, Description: f.Description, Schema: f.Schema, Launched: f.Tool,
			call: func(ctx context.Context, c Call) (Result, error) {
				return callLaunched(ctx, l, f.Tool, c)
			},
		})
	}
	return tools, nil
}

// callLaunched runs a tool for a model. A stream of text is passed on as it comes.
func callLaunched(ctx context.Context, l *launcher.Launcher, id string, c Call) (Result, error) {
	args := bytes.TrimSpace(c.Arguments)
	if len(args) > 0 {
		var object map[string]json.RawMessage
		if err := arguments(c, &object); err != nil {
			return Result{}, err
		}
	}
	seq := uint64(0)
	r, err := l.Stream(ctx, launcher.Request{Tool: id, Inputs: args}, func(e messages.ToolEvent) error {
		var text string
		if c.OnEvent != nil && e.Append && json.Unmarshal(e.Value, &text) == nil {
			seq++
			c.OnEvent(messages.Stream{Position: messages.Position{Seq: seq}, Name: messages.StdoutStream, Text: text})
		}
		return nil
	})
	if errors.Is(err, launcher.ErrClosed) {
		err = coppice.ErrClosed // it ends with the host
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Text: toldOf(r), IsError: r.Error != nil, Run: &r}, nil
}

// toldOf is a result in words for a model: the outputs as JSON, the files, and
// what went wrong.
func toldOf(r messages.ToolResult) string {
	var lines []string
	if r.Error != nil {
		lines = append(lines, r.Error.Message)
		if r.Error.Hint != "" {
			lines = append(lines, r.Error.Hint)
		}
		if text := strings.TrimSpace(r.Error.Stderr); text != "" {
			all := strings.Split(text, "\n")
			lines = append(lines, "standard error of the tool:")
			lines = append(lines, all[max(0, len(all)-toldLines):]...)
		}
	}
	if len(r.Outputs) > 0 {
		lines = append(lines, string(r.Outputs))
	}
	if len(r.Files) > 0 {
		lines = append(lines, "files in "+r.Artifacts+": "+strings.Join(r.Files, ", "))
	}
	if len(lines) == 0 {
		return "the tool returned nothing"
	}
	return strings.Join(lines, "\n")
}
