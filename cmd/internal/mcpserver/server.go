package mcpserver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
)

// Options makes a server. The zero value of a field is its default.
type Options struct {
	// Host runs the calls. Required.
	Host *coppice.Host
	// Version is the one that clients see.
	Version string
	// Tools says which tools are served. The argument session is always there.
	Tools agent.Options
	// Cwd is the working directory of calls that name none. "": that of this
	// process.
	Cwd string
	// SharedSessions lets clients over HTTP name sessions that all of them share: one
	// that a call names is then everybody's. false: no client reaches the session of
	// another, whatever it names.
	SharedSessions bool
	// MaxLeftover is how many sessions stay that a stateless call has begun and none
	// has gone on with; the oldest ends for one more. 0: 8.
	MaxLeftover int
	// KeepAlive is how often a call without output sends progress. 0: 5 s.
	KeepAlive time.Duration
	// LookAgain is how often it is looked whether Python can be used that cannot: its
	// tools are offered then, and clients told. 0: 30 s.
	LookAgain time.Duration
	// Fleet says that the server is one of several that clients take for one. The zero value: it
	// is alone.
	Fleet Fleet
	// Logger hears what clients do wrong. nil: it is not logged.
	Logger *slog.Logger
}

const instructions = `Python that stays alive. Cells of one session share variables; sessions share nothing.
Use one session for one line of work. Where a result tells you to pass a session on, pass it in each further call.
Read what the result says about the state: "fresh" or "lost" means that earlier variables are gone.`

// The tools that are not like the others of the host: bash leaves nothing behind in
// its session, and reset_repl runs nothing. sessionTools begins the names of those
// that look after sessions.
const (
	bashTool     = "bash"
	resetTool    = "reset_repl"
	sessionTools = "sessions_"

	listTool       = sessionTools + "list"
	interruptTool  = sessionTools + "interrupt"
	closeTool      = sessionTools + "close"
	checkpointTool = sessionTools + "checkpoint"
	rewindTool     = sessionTools + "rewind"
)

// server is what the handlers share.
type server struct {
	o       Options
	mcp     *mcp.Server
	dialogs *dialogs
	handles handles
	left    *leftovers
	tools   *followed

	checkpoints checkpoints
	disk        onDisk
}

// Server is a server of the protocol, from New. Any goroutine may use it.
type Server struct {
	*mcp.Server

	shared *server
}

// Close ends the calls that wait for a client with the answer to a question, and
// waits for them, and drops what is on disk that no client can name afterwards. The server takes no such calls afterwards, and looks for Python no more.
func (s *Server) Close() {
	s.shared.tools.close()
	s.shared.dialogs.close()
	s.shared.disk.end(s.shared.left.endAll)
}

// New makes a server that any number of connections may share; Close belongs to
// the caller. The error matches coppice.ErrOptions.
func New(o Options) (*Server, error) {
	if o.KeepAlive <= 0 {
		o.KeepAlive = 5 * time.Second
	}
	if o.MaxLeftover <= 0 {
		o.MaxLeftover = 8
	}
	if o.LookAgain <= 0 {
		o.LookAgain = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Tools.SessionArgument = true
	s := &server{o: o, dialogs: newDialogs(), handles: newHandles(o.Fleet.Secret)}
	s.left = newLeftovers(o.MaxLeftover, s.endSession)
	s.disk = onDisk{host: o.Host, cwd: o.Cwd, log: o.Logger, whose: s.whose, before: s.beforeRestore, after: s.afterRestore}
	m := mcp.NewServer(
		&mcp.Implementation{Name: "coppice", Title: "Coppice", Version: o.Version},
		&mcp.ServerOptions{Instructions: instructions, Logger: o.Logger, Capabilities: &mcp.ServerCapabilities{}, GetSessionID: o.Fleet.connection},
	)
	s.mcp = m
	tools, err := s.followTools(m)
	if err != nil {
		return nil, err
	}
	s.tools = tools
	s.addSessions(m)
	s.addCheckpoints(m)
	s.disk.addTools(m)
	s.addArtifacts(m)
	if o.Tools.Notebooks {
		s.addNotebooks(m)
	}
	s.tellStateless(m)
	refusePrompts(m)
	return &Server{m, s}, nil
}

// endSession ends an unused session. Its host may have ended before it.
func (s *server) endSession(ctx context.Context, key messages.SessionKey) {
	s.checkpoints.forget(key.Session)
	s.disk.ended(ctx, key)
	if err := s.o.Host.Session(key.Session, coppice.In(key.Cwd)).Close(ctx); err != nil && !errors.Is(err, coppice.ErrClosed) {
		s.o.Logger.Warn("end a session that nobody uses", "session", key.Session, "err", err)
	}
}

// definition describes a tool to clients.
func definition(t agent.Tool) *mcp.Tool {
	destructive, open := t.Destructive, true
	d := &mcp.Tool{
		Name: t.Name, Title: t.Label, Description: t.Description, InputSchema: t.Schema,
		Annotations: &mcp.ToolAnnotations{Title: t.Label, ReadOnlyHint: t.ReadOnly, DestructiveHint: &destructive, OpenWorldHint: &open},
	}
	switch {
	case t.Launched != "":
	case t.Name == resetTool, t.Name == "notebook_read", t.Name == "notebook_edit": // they run nothing
	default:
		d.OutputSchema = resultSchema
	}
	return d
}
