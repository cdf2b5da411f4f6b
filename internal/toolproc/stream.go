package toolproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/sse"
	"github.com/coppice-run/coppice/messages"
)

// stream is a run whose outputs come bit by bit.
func (p *Process) stream(ctx context.Context, c *call, body *payload) Answer {
	begin, done := opportunity.Within(ctx, beginBudget, p.Subject())
	defer done()
	resp, err := p.request(begin, http.MethodPost, "/run", body, c)
	if err != nil {
		if begin.Err() != nil && ctx.Err() == nil {
			return Answer{Error: &messages.ToolError{
				Kind: messages.ToolErrorTool, Stderr: p.since(c),
				Message: fmt.Sprintf("POST /run did not return within %v", beginBudget.Opportunity),
				Hint:    "a tool that streams starts its work in /run, returns at once, and sends what comes of it from /stream",
			}}
		}
		return p.broken(ctx, c, err)
	}
	first, err := p.readBody(resp)
	_ = resp.Body.Close()
	done()
	if err != nil {
		return p.broken(ctx, c, err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		return Answer{Error: p.explain(c, resp.StatusCode, first)}
	}
	g := newGathering(p.o.Tool, first)
	resp, err = p.request(ctx, http.MethodGet, "/stream?run_id="+url.QueryEscape(c.Run), nil, c)
	if err != nil {
		return p.broken(ctx, c, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxSmallBody)) // the status is the news
		return Answer{Error: p.explain(c, resp.StatusCode, data)}
	}
	return p.follow(ctx, c, g, sse.NewReader(resp.Body, 0))
}

// follow reads the events of a run to their end.
func (p *Process) follow(ctx context.Context, c *call, g *gathering, events *sse.Reader) Answer {
	for {
		e, err := events.Next()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && g.allDone():
			return p.complete(c, g)
		case errors.Is(err, io.EOF):
			a := p.broken(ctx, c, errors.New("the stream ended before the outputs were complete"))
			a.Outputs = g.partial()
			return a
		case errors.Is(err, sse.ErrTooLong):
			return Answer{Outputs: g.partial(), Error: &messages.ToolError{Kind: messages.ToolErrorOutput, Message: "the stream cannot be read: " + err.Error(), Stderr: p.since(c)}}
		default:
			a := p.broken(ctx, c, err)
			a.Outputs = g.partial()
			return a
		}
		switch e.Name {
		case "error":
			return Answer{Outputs: g.partial(), Error: p.streamError(c, e.Data)}
		case "done":
			return p.complete(c, g)
		}
		if p.tooLarge(g) {
			return Answer{Outputs: g.partial(), Error: &messages.ToolError{Kind: messages.ToolErrorOutput, Message: fmt.Sprintf("%v: more than %d bytes", errTooLarge, p.o.MaxBody)}}
		}
		event := g.take(e)
		if c.Emit != nil {
			if err := c.Emit(event); err != nil {
				return Answer{Outputs: g.partial(), Error: &messages.ToolError{Kind: messages.ToolErrorCancelled, Message: "the stream is not read any more: " + err.Error()}}
			}
		}
		if g.allDone() && g.complete() {
			return p.complete(c, g)
		}
	}
}

// complete makes the answer of a stream that has ended well.
func (p *Process) complete(c *call, g *gathering) Answer {
	outputs := g.outputs()
	data, err := json.Marshal(outputs)
	if err != nil {
		data = nil // a value that is no JSON; finish says which
	}
	return p.finish(c, outputs, data)
}

func (p *Process) tooLarge(g *gathering) bool { return g.size > p.o.MaxBody }

func (p *Process) streamError(c *call, data string) *messages.ToolError {
	var told struct {
		Message string `json:"message"`
		Detail  string `json:"detail"`
	}
	text := data
	if json.Unmarshal([]byte(data), &told) == nil && told.Message+told.Detail != "" {
		text = told.Message + told.Detail
	}
	p.settleStderr(c)
	e := &messages.ToolError{Kind: messages.ToolErrorTool, Message: "the tool failed: " + p.env.Mask(text), Stderr: p.since(c), Hint: "view stderr"}
	switch why := failedWith(text, e.Stderr); {
	case why.memory():
		return p.memoryError(e)
	case why.thread():
		return p.threadError(e)
	default:
		return e
	}
}
