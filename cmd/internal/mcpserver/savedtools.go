package mcpserver

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/messages"
)

// The tools.
const (
	saveTool    = "sessions_save"
	restoreTool = "sessions_restore"
	savedTool   = "sessions_saved"
	dropTool    = "sessions_drop"
)

type saveArgs struct {
	Session string `json:"session,omitempty" jsonschema:"Name of the session; that of calls that name none if it is left out."`
	Cwd     string `json:"cwd,omitempty" jsonschema:"Working directory of the session."`
	Name    string `json:"name" jsonschema:"How the checkpoint is called: letters, digits, dots, dashes and underscores."`
	Lossy   bool   `json:"lossy,omitempty" jsonschema:"Keep what can be kept, though something is lost."`
	Replace bool   `json:"replace,omitempty" jsonschema:"Replace the one of that name."`
}

// saved tells of a checkpoint on disk.
type saved struct {
	Name    string `json:"name" jsonschema:"to be passed to sessions_restore"`
	Session string `json:"session"`
	Bytes   int64  `json:"bytes"`
	messages.Memory
}

type restoreArgs struct {
	Session string `json:"session,omitempty" jsonschema:"Name of the session that goes on from it, which need not be there yet; that of calls that name none if it is left out."`
	Cwd     string `json:"cwd,omitempty" jsonschema:"Working directory of the session."`
	Name    string `json:"name" jsonschema:"What sessions_save was given."`
	From    string `json:"from,omitempty" jsonschema:"The session that sessions_save was given, if results of calls name sessions and it is another one."`
}

// restored tells what a session has from a checkpoint.
type restored struct {
	Session string `json:"session"`
	Name    string `json:"name"`
	messages.Restored
}

type dropArgs struct {
	Session string `json:"session,omitempty" jsonschema:"The session that sessions_save was given."`
	Name    string `json:"name" jsonschema:"How the checkpoint is called."`
}

type dropped struct {
	Done string `json:"done"`
}

type savedArgs struct {
	Session string `json:"session,omitempty" jsonschema:"The session that sessions_save was given; that of calls that name none if it is left out."`
}

type savedInfo struct {
	Name    string `json:"name"`
	Made    string `json:"made" jsonschema:"when it was saved, RFC 3339"`
	Expires string `json:"expires,omitempty" jsonschema:"until when it is kept, RFC 3339"`
	Bytes   int64  `json:"bytes"`
	Python  string `json:"python"`
	messages.Memory
}

type savedList struct {
	Checkpoints []savedInfo `json:"checkpoints"`
}

// addTools adds the tools that keep states of sessions on disk, where the host does that.
func (d *onDisk) addTools(m *mcp.Server) {
	if !d.keeps() {
		return
	}
	no, yes := false, true
	add(m, &mcp.Tool{
		Name: saveTool, Title: "Save a session on disk",
		Description: "Keeps the variables of a session on disk under a name; the session goes on. sessions_restore has it or another one go on from there, also when its Python has ended meanwhile. The result says what is kept, lost and changed. Files are not kept.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
	}, d.save)
	add(m, &mcp.Tool{
		Name: restoreTool, Title: "Restore a session from disk",
		Description: "Has a session go on from what sessions_save has kept, which stays. What the session had is gone; files are not put back. One that cannot be restored changes nothing.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &no},
	}, d.restore)
	add(m, &mcp.Tool{
		Name: savedTool, Title: "List what is saved", Description: "Lists what sessions_save has kept for you, and until when.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}, d.list)
	add(m, &mcp.Tool{
		Name: dropTool, Title: "Drop what is saved", Description: "Drops what sessions_save has kept under a name.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &no},
	}, d.drop)
}

// add adds a tool whose errors name it.
func add[In, Out any](m *mcp.Server, t *mcp.Tool, do func(context.Context, *mcp.CallToolRequest, In) (Out, error)) {
	mcp.AddTool(m, t, func(ctx context.Context, req *mcp.CallToolRequest, args In) (*mcp.CallToolResult, Out, error) {
		out, err := do(ctx, req, args)
		if err != nil {
			err = fmt.Errorf("%s: %w", t.Name, err)
		}
		return nil, out, err
	})
}
