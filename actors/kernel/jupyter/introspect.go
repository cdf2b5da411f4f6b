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

// maxMatches bounds the completions of an answer, maxInspected the bytes of a
// document.
const (
	maxMatches   = 200
	maxInspected = 16 << 10
)

// introspect passes the question on to the kernel. The answer is one display, as it
// is from an interpreter that runs Python code for it.
func (i *Interpreter) introspect(ctx context.Context, q messages.Introspect, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	i.running.Store(true)
	defer i.running.Store(false)
	var answer any
	var err error
	switch q.Kind {
	case messages.IntrospectComplete:
		answer, err = i.complete(ctx, q)
	case messages.IntrospectInspect:
		answer, err = i.inspect(ctx, q)
	default:
		err = fmt.Errorf("introspect: unknown kind %q", q.Kind)
	}
	switch {
	case errors.Is(err, jupyter.ErrNoReply): // interrupted: the kernel is well
		return kernel.CellReply{Interrupted: true}, nil
	case errors.Is(err, jupyter.ErrNoAnswer):
		return kernel.CellReply{Error: &messages.ErrorDetails{Name: "NoAnswer", Message: err.Error()}}, nil
	case err != nil:
		return kernel.CellReply{}, i.lost(err)
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return kernel.CellReply{}, fmt.Errorf("introspect: encode the answer: %w", err)
	}
	if err := emit(ctx, messages.Display{Data: messages.Bundle{messages.MIMEJSON: raw}}); err != nil {
		return kernel.CellReply{}, err
	}
	return kernel.CellReply{OK: true}, nil
}

func (i *Interpreter) complete(ctx context.Context, q messages.Introspect) (any, error) {
	c, err := i.kernel.Complete(ctx, q.Code, q.Cursor)
	matches, seen := []string{}, map[string]bool{}
	for _, m := range c.Matches {
		if m = strings.TrimSpace(m); m != "" && !seen[m] && len(matches) < maxMatches {
			seen[m] = true
			matches = append(matches, m)
		}
	}
	return map[string]any{"matches": matches, "start": c.Start}, err
}

func (i *Interpreter) inspect(ctx context.Context, q messages.Introspect) (any, error) {
	data, err := i.kernel.Inspect(ctx, q.Code, q.Cursor)
	text, ok := data.Text(messages.MIMEPlain)
	if !ok {
		text, _ = data.Text(messages.MIMEMarkdown)
	}
	if len(text) > maxInspected {
		text = strings.ToValidUTF8(text[:maxInspected], "")
	}
	return map[string]any{"text": text}, err
}
