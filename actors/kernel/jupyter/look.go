package jupyter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
)

// maxMatches and maxInspected bound what a look answers.
const (
	maxMatches   = 200
	maxInspected = 16 << 10
)

// look asks the kernel what a look asks. Like an interpreter that runs Python
// code for it, it answers with one display.
func (i *Interpreter) look(ctx context.Context, l messages.Look, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	i.running.Store(true)
	defer i.running.Store(false)
	var answer any
	var err error
	switch l.Kind {
	case messages.LookComplete:
		answer, err = i.complete(ctx, l)
	case messages.LookInspect:
		answer, err = i.inspect(ctx, l)
	default:
		err = fmt.Errorf("look into the session: there is no kind %q", l.Kind)
	}
	switch {
	case errors.Is(err, jupyter.ErrNoReply): // interrupted: the kernel is well
		return kernel.CellReply{Interrupted: true}, nil
	case errors.Is(err, jupyter.ErrNoAnswer):
		return kernel.CellReply{Error: &messages.ErrorDetails{Name: "NoAnswer", Message: err.Error()}}, nil
	case err != nil:
		return kernel.CellReply{}, lost(err)
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return kernel.CellReply{}, fmt.Errorf("answer a look: %w", err)
	}
	if err := emit(ctx, messages.Display{Data: messages.Bundle{messages.MIMEJSON: raw}}); err != nil {
		return kernel.CellReply{}, err
	}
	return kernel.CellReply{OK: true}, nil
}

func (i *Interpreter) complete(ctx context.Context, l messages.Look) (any, error) {
	c, err := i.kernel.Complete(ctx, l.Code, l.Cursor)
	matches, seen := []string{}, map[string]bool{}
	for _, m := range c.Matches {
		if m = strings.TrimSpace(m); m != "" && !seen[m] && len(matches) < maxMatches {
			seen[m] = true
			matches = append(matches, m)
		}
	}
	return map[string]any{"matches": matches, "start": c.Start}, err
}

func (i *Interpreter) inspect(ctx context.Context, l messages.Look) (any, error) {
	data, err := i.kernel.Inspect(ctx, l.Code, l.Cursor)
	text, ok := data.Text(messages.MIMEPlain)
	if !ok {
		text, _ = data.Text(messages.MIMEMarkdown)
	}
	if len(text) > maxInspected {
		text = strings.ToValidUTF8(text[:maxInspected], "")
	}
	return map[string]any{"text": text}, err
}
