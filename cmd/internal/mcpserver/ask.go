package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/messages"
)

// statelessProtocol is the first version without requests from server to client:
// a question ends the request, and the client makes it again with the answer.
const statelessProtocol = "2026-07-28"

// canAsk reports whether the user of a client can be asked, and whether that is
// done by rounds.
func canAsk(req *mcp.CallToolRequest) (can, rounds bool) {
	c := req.ClientCapabilities()
	return c != nil && c.Elicitation != nil && req.Session != nil, req.ProtocolVersion() >= statelessProtocol
}

// inputSchema is the form for one line of input.
var inputSchema = map[string]any{
	"type":       "object",
	"properties": map[string]any{"value": map[string]any{"type": "string", "title": "Input"}},
	"required":   []string{"value"},
}

// What input() hears of a user who is not asked, or gives no answer.
var (
	errDeclined = errors.New("the user gave no answer")
	errSecret   = errors.New("a secret is not asked for")
)

// secretNote is what a model reads about getpass.
const secretNote = "getpass was not passed on to the user: a client shows and records what is typed into its form. Have the secret put into the environment of the server or into a file, and read it there."

// user answers the questions of one call. Any goroutine may use it.
type user struct {
	ask    func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
	log    *slog.Logger
	secret atomic.Bool // a question was for a secret
}

// input asks the user for a line of input, but never for a secret: the protocol
// forbids that in forms, which clients show and record.
func (u *user) input(ctx context.Context, q messages.InputRequest) (string, error) {
	if q.Password {
		u.secret.Store(true)
		return "", errSecret
	}
	prompt := q.Prompt
	if prompt == "" {
		prompt = "The Python code asks for a line of input."
	}
	r, err := u.ask(ctx, &mcp.ElicitParams{Message: prompt, RequestedSchema: inputSchema})
	if err != nil {
		u.log.Info("the user could not be asked", "err", err)
		return "", fmt.Errorf("ask the user: %w", err)
	}
	if r == nil || r.Action != "accept" {
		return "", errDeclined
	}
	value, ok := r.Content["value"].(string)
	if !ok {
		return "", errDeclined
	}
	return value, nil
}
