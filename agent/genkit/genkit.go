package genkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/firebase/genkit/go/ai"

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
	// OnEvent hears the output of calls as it comes, each from one goroutine. nil:
	// it is not called.
	OnEvent func(context.Context, messages.Event)
}

// Tools turns tools of a host into tools of Genkit. Their output is the text of a
// result; its pictures are parts beside that. The list goes to ai.WithTools as it
// is.
func Tools(list []agent.Tool, o Options) ([]ai.ToolRef, error) {
	tools := make([]ai.ToolRef, 0, len(list))
	for _, t := range list {
		var schema map[string]any
		if err := json.Unmarshal(t.Schema, &schema); err != nil {
			return nil, fmt.Errorf("read the schema of the tool %s: %w", t.Name, err)
		}
		call := func(ctx *ai.ToolContext, input any) (*ai.MultipartToolResponse, error) { return o.call(ctx, t, input) }
		tools = append(tools, ai.NewMultipartTool(t.Name, t.Description, call, ai.WithInputSchema(schema)))
	}
	return tools, nil
}

func (o Options) call(ctx context.Context, t agent.Tool, input any) (*ai.MultipartToolResponse, error) {
	arguments, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("call the tool %s: %w", t.Name, err)
	}
	c := agent.Call{Arguments: arguments, Owner: o.Owner}
	if o.Session != nil {
		c.Session = o.Session(ctx)
	}
	if o.OnEvent != nil {
		c.OnEvent = func(e messages.Event) { o.OnEvent(ctx, e) }
	}
	r, err := t.Call(ctx, c)
	if bad, ok := errors.AsType[*agent.Error](err); ok {
		return &ai.MultipartToolResponse{Output: bad.Error()}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("call the tool %s: %w", t.Name, err)
	}
	response := &ai.MultipartToolResponse{Output: r.Text}
	for _, image := range r.Images {
		response.Content = append(response.Content, ai.NewMediaPart(image.MIME, "data:"+image.MIME+";base64,"+image.Data))
	}
	return response, nil
}
