package adk

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	coppiceagent "github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
)

// Options say how calls are made. The zero value of a field is its default.
type Options struct {
	// Session says whose variables a call uses. nil: each session of ADK has its
	// own, named by application, user and session.
	Session func(agent.Context) messages.SessionKey
	// Owner is the agent that calls; see coppice.Request.Owner. "": the name of
	// ADK's agent.
	Owner string
	// Artifacts keeps pictures as artifacts of the session. The runner must have an
	// artifact service: ADK panics when there is none. false: a result says only
	// that there was a picture.
	Artifacts bool
	// Confirm makes ADK ask a person before each call.
	Confirm bool
	// OnEvent hears the output of calls as it comes, each from one goroutine. nil:
	// it is not called.
	OnEvent func(agent.Context, messages.Event)
}

// Tools turns tools of a host into function tools of ADK. A response has the text
// of the result under "result" or, when the call did not do what was asked, under
// "error".
func Tools(list []coppiceagent.Tool, o Options) ([]tool.Tool, error) {
	tools := make([]tool.Tool, 0, len(list))
	for _, t := range list {
		var s jsonschema.Schema
		if err := json.Unmarshal(t.Schema, &s); err != nil {
			return nil, fmt.Errorf("read the schema of the tool %s: %w", t.Name, err)
		}
		call := func(ctx agent.Context, arguments map[string]any) (map[string]any, error) {
			return o.call(ctx, t, arguments)
		}
		made, err := functiontool.New(functiontool.Config{
			Name: t.Name, Description: t.Description, InputSchema: &s, RequireConfirmation: o.Confirm,
		}, call)
		if err != nil {
			return nil, fmt.Errorf("make the tool %s: %w", t.Name, err)
		}
		tools = append(tools, made)
	}
	return tools, nil
}

func (o Options) call(ctx agent.Context, t coppiceagent.Tool, arguments map[string]any) (map[string]any, error) {
	data, err := json.Marshal(arguments)
	if err != nil {
		return nil, fmt.Errorf("call the tool %s: %w", t.Name, err)
	}
	c := coppiceagent.Call{Arguments: data, Owner: o.Owner}
	if c.Owner == "" {
		c.Owner = ctx.AgentName()
	}
	if o.Session != nil {
		c.Session = o.Session(ctx)
	} else {
		c.Session = messages.SessionKey{Session: strings.Join([]string{ctx.AppName(), ctx.UserID(), ctx.SessionID()}, "/")}
	}
	if o.OnEvent != nil {
		c.OnEvent = func(e messages.Event) { o.OnEvent(ctx, e) }
	}
	r, err := t.Call(ctx, c)
	if bad, ok := errors.AsType[*coppiceagent.Error](err); ok {
		return map[string]any{"error": bad.Error()}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("call the tool %s: %w", t.Name, err)
	}
	text := r.Text + o.save(ctx, r.Images)
	if r.IsError {
		return map[string]any{"error": text}, nil
	}
	return map[string]any{"result": text}, nil
}

// save keeps pictures as artifacts, if it shall, and says of each, for the model,
// where it is. It fails no call: the code has run.
func (o Options) save(ctx agent.Context, images []messages.Image) string {
	var said strings.Builder
	for i, image := range images {
		if !o.Artifacts {
			fmt.Fprintf(&said, "\n[picture %d: %s, %d x %d]", i+1, image.MIME, image.Width, image.Height)
			continue
		}
		name := fmt.Sprintf("%s-%d.%s", ctx.FunctionCallID(), i+1, strings.TrimPrefix(image.MIME, "image/"))
		if err := keep(ctx, name, image); err != nil {
			fmt.Fprintf(&said, "\n[picture %d was not kept: %v]", i+1, err)
			continue
		}
		fmt.Fprintf(&said, "\n[picture %d: artifact %s, %d x %d]", i+1, name, image.Width, image.Height)
	}
	return said.String()
}

func keep(ctx agent.Context, name string, image messages.Image) error {
	data, err := base64.StdEncoding.DecodeString(image.Data)
	if err != nil {
		return fmt.Errorf("decode it: %w", err)
	}
	if _, err := ctx.Artifacts().Save(ctx, name, genai.NewPartFromBytes(data, image.MIME)); err != nil {
		return fmt.Errorf("save the artifact %s: %w", name, err)
	}
	return nil
}
