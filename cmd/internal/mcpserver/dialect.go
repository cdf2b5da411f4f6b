package mcpserver

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/artifact"
)

// API is the protocol as a part of a server, also of one of a fleet. Make it with NewAPI. Any
// goroutine may call its methods.
type API struct {
	m       *Server
	o       Options
	handler http.Handler
}

var _ dialect.Dialect = (*API)(nil)

// NewAPI serves m at [Path].
func NewAPI(m *Server, o Options) *API { return &API{m: m, o: o, handler: protocol(m, o)} }

// Close ends what New began. A nil API has nothing.
func (a *API) Close() {
	if a != nil {
		a.m.Close()
	}
}

// tagPath is where one asks whether a server has a tag.
const tagPath = Path + "/at/"

// Mounts are the parts of a server that it is. A nil API has none.
func (a *API) Mounts() []httpserver.Mount {
	if a == nil {
		return nil
	}
	return []httpserver.Mount{
		{Pattern: Path, Handler: a, Scope: httpserver.Run},
		{Pattern: "GET " + tagPath + "{tag}", Handler: a, Scope: httpserver.Run},
	}
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tag, asks := strings.CutPrefix(r.URL.Path, tagPath)
	switch {
	case !asks:
		a.handler.ServeHTTP(w, r)
	case a.o.Fleet.Tag != 0 && tag == strconv.Itoa(a.o.Fleet.Tag):
		w.WriteHeader(http.StatusOK)
	default:
		httpserver.Error(w, http.StatusNotFound, "not_found", "this server is not the one of that number", "")
	}
}

// Streams reports whether a request is the one by which a client hears what nobody has asked for.
func (a *API) Streams(r *http.Request) bool { return r.Method != http.MethodPost }

// routed is as much of a message as says where it belongs.
type routed struct {
	Method string
	Params struct {
		Name         string
		Arguments    json.RawMessage
		RequestState string
		URI          string
	}
}

// About says which server has what a request is about: the connection, the session or the
// artifact. A call that begins a session notes its handle in the header.
func (a *API) About(r *http.Request, body []byte) dialect.About {
	if strings.HasPrefix(r.URL.Path, tagPath) {
		return dialect.About{}
	}
	var m routed
	_ = json.Unmarshal(body, &m) // the handler says what is wrong with it
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		return a.aboutConnection(id, m)
	}
	if r.Method != http.MethodPost {
		return dialect.About{}
	}
	anywhere := dialect.About{Anywhere: messages.NewID()}
	var arguments struct{ Session, Cwd, Artifact string }
	_ = json.Unmarshal(m.Params.Arguments, &arguments) // as above
	uri := cmp.Or(arguments.Artifact, m.Params.URI)
	if n, err := artifact.ParseURI(uri); err == nil && (m.Method == "resources/read" || m.Params.Name == "artifact_read") {
		return dialect.About{Near: tagPath + strconv.Itoa(n/artifacts)}
	}
	if m.Method != "tools/call" || !a.m.shared.inSession(m.Params.Name) {
		return anywhere
	}
	_, state, _ := strings.Cut(m.Params.RequestState, stateHandle)
	handle := cmp.Or(arguments.Session, state)
	begins := !strings.HasPrefix(m.Params.Name, sessionTools) || m.Params.Name == restoreTool
	switch {
	case handle == "" && !begins:
		return anywhere // it is told that it has to name one
	case handle == "":
		if handle = r.Header.Get(handleHeader); !a.m.shared.handles.minted(handle) {
			handle = a.m.shared.handles.mint()
			r.Header.Set(handleHeader, handle)
		}
	case !a.m.shared.handles.minted(handle):
		return anywhere // it is told that there is none
	}
	key := messages.SessionKey{Session: hidden(handle), Cwd: a.o.Cwd}.In(arguments.Cwd)
	// What is kept of it on disk is at no server.
	makes := m.Params.Name != listTool && m.Params.Name != interruptTool
	return dialect.About{Session: key, Makes: makes, Begins: begins && m.Params.RequestState == ""}
}

// aboutConnection says which server has a session of the protocol, and which session of Python its
// call uses.
func (a *API) aboutConnection(id string, m routed) dialect.About {
	tag, _, _ := strings.Cut(id, "-")
	if _, err := strconv.Atoi(tag); err != nil {
		return dialect.About{} // it is none of these servers'; the handler says so
	}
	about := dialect.About{Near: tagPath + tag}
	if m.Method == "tools/call" && a.m.shared.inSession(m.Params.Name) && tag == strconv.Itoa(a.o.Fleet.Tag) {
		var arguments struct{ Session, Cwd string }
		_ = json.Unmarshal(m.Params.Arguments, &arguments) // the handler says what is wrong with it
		about.Holds = messages.SessionKey{Session: hidden(id) + "/" + cmp.Or(arguments.Session, defaultSession), Cwd: a.o.Cwd}.In(arguments.Cwd)
	}
	return about
}

// Refuse answers no, as a server of the protocol does that cannot be reached: by the status.
func (a *API) Refuse(w http.ResponseWriter, _ *http.Request, no *httpserver.Refusal) {
	no.Answer(w)
}

// inSession reports whether a call of a tool is one of a session.
func (s *server) inSession(tool string) bool {
	if strings.HasPrefix(tool, sessionTools) {
		return true
	}
	s.tools.mu.Lock()
	defer s.tools.mu.Unlock()
	t, there := s.tools.shown[tool]
	return there && takesSession(t)
}
