package mcpserver

import (
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice"
)

// Options makes a server. The zero value of a field is its default.
type Options struct {
	// Host runs the calls. Required.
	Host *coppice.Host
	// Version is what clients are told.
	Version string
	// Tools says which tools are served. The argument session is always there.
	Tools coppice.ToolOptions
	// Cwd is the working directory of calls that name none. "": that of this
	// process.
	Cwd string
	// KeepAlive is how often a call without output sends progress. 0: 5 s.
	KeepAlive time.Duration
	// Logger hears what clients do wrong. nil: nobody.
	Logger *slog.Logger
}

const instructions = `Python that stays alive. Cells of one session share variables; sessions share nothing.
Use one session for one line of work. Read what the result says about the state: "fresh" or "lost" means that earlier variables are gone.`

// server is what the handlers share. Nothing in it changes.
type server struct {
	o       Options
	dialogs *dialogs
}

// Server is a server of the protocol, from New. Any goroutine may use it.
type Server struct {
	*mcp.Server

	shared *server
}

// Close ends the calls that wait for a client with the answer to a question, and
// waits for them. The server takes no such calls afterwards.
func (s *Server) Close() { s.shared.dialogs.close() }

// New makes a server that any number of connections may share; Close belongs to
// the caller. The error matches coppice.ErrOptions.
func New(o Options) (*Server, error) {
	if o.KeepAlive <= 0 {
		o.KeepAlive = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Tools.SessionArgument = true
	tools, err := o.Host.Tools(o.Tools)
	if err != nil {
		return nil, err
	}
	s := &server{o: o, dialogs: newDialogs()}
	m := mcp.NewServer(
		&mcp.Implementation{Name: "coppice", Title: "Coppice", Version: o.Version},
		&mcp.ServerOptions{Instructions: instructions, Logger: o.Logger, Capabilities: &mcp.ServerCapabilities{}},
	)
	for _, tool := range tools {
		m.AddTool(definition(tool), s.handler(tool))
	}
	s.followTools(m, tools)
	s.addSessions(m)
	s.addArtifacts(m)
	if o.Tools.Notebooks {
		s.addNotebooks(m)
	}
	return &Server{m, s}, nil
}

// definition describes a tool to clients.
func definition(t coppice.Tool) *mcp.Tool {
	destructive, open := t.Destructive, true
	d := &mcp.Tool{
		Name: t.Name, Title: t.Label, Description: t.Description, InputSchema: t.Schema,
		Annotations: &mcp.ToolAnnotations{Title: t.Label, ReadOnlyHint: t.ReadOnly, DestructiveHint: &destructive, OpenWorldHint: &open},
	}
	switch {
	case t.Launched != "":
	case t.Name == "reset_repl", t.Name == "notebook_read", t.Name == "notebook_edit": // they run nothing
	default:
		d.OutputSchema = resultSchema
	}
	return d
}
