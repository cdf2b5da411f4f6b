package eino

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
)

// Options say how calls are made. The zero value of a field is its default.
type Options struct {
	// Session says whose variables a call uses, from the context of the call: a name
	// for each conversation. nil, and "": calls that run code fail with
	// agent.ErrNoSession, so that conversations do not meet by accident.
	Session func(context.Context) messages.SessionKey
	// Owner is the agent that calls; see coppice.Request.Owner.
	Owner string
	// Images lets results have pictures: the tools are then EnhancedInvokableTool.
	// false: they are InvokableTool, and results are text.
	Images bool
	// OnEvent hears the output of calls as it comes, each from one goroutine. nil:
	// it is not called.
	OnEvent func(context.Context, messages.Event)
}

// Tools turns tools of a host into tools of eino.
func Tools(list []agent.Tool, o Options) ([]tool.BaseTool, error) {
	tools := make([]tool.BaseTool, 0, len(list))
	for _, t := range list {
		var s jsonschema.Schema
		if err := json.Unmarshal(t.Schema, &s); err != nil {
			return nil, fmt.Errorf("read the schema of the tool %s: %w", t.Name, err)
		}
		b := base{tool: t, o: o, info: &schema.ToolInfo{Name: t.Name, Desc: t.Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(&s)}}
		if o.Images {
			tools = append(tools, enhanced{b})
		} else {
			tools = append(tools, plain{b})
		}
	}
	return tools, nil
}

// base is a tool of either kind.
type base struct {
	tool agent.Tool
	o    Options
	info *schema.ToolInfo
}

// Info describes the tool to a model.
func (b base) Info(context.Context) (*schema.ToolInfo, error) { return b.info, nil }

func (b base) call(ctx context.Context, arguments string) (agent.Result, error) {
	c := agent.Call{Arguments: json.RawMessage(arguments), Owner: b.o.Owner}
	if b.o.Session != nil {
		c.Session = b.o.Session(ctx)
	}
	if b.o.OnEvent != nil {
		c.OnEvent = func(e messages.Event) { b.o.OnEvent(ctx, e) }
	}
	r, err := b.tool.Call(ctx, c)
	if bad, ok := errors.AsType[*agent.Error](err); ok {
		return agent.Result{Text: bad.Error(), IsError: true}, nil
	}
	if err != nil {
		return r, fmt.Errorf("call the tool %s: %w", b.tool.Name, err)
	}
	return r, nil
}

// plain is a tool whose results are text.
type plain struct{ base }

// InvokableRun makes a call.
func (p plain) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	r, err := p.call(ctx, arguments)
	return r.Text, err
}

// enhanced is a tool whose results are text and pictures.
type enhanced struct{ base }

// InvokableRun makes a call.
func (e enhanced) InvokableRun(ctx context.Context, arguments *schema.ToolArgument, _ ...tool.Option) (*schema.ToolResult, error) {
	r, err := e.call(ctx, arguments.Text)
	if err != nil {
		return nil, err
	}
	result := &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: r.Text}}}
	for i := range r.Images {
		image := &schema.ToolOutputImage{MessagePartCommon: schema.MessagePartCommon{Base64Data: &r.Images[i].Data, MIMEType: r.Images[i].MIME}}
		result.Parts = append(result.Parts, schema.ToolOutputPart{Type: schema.ToolPartTypeImage, Image: image})
	}
	return result, nil
}

var (
	_ tool.InvokableTool         = plain{}
	_ tool.EnhancedInvokableTool = enhanced{}
)
