package about

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// Reader finds out what requests are about, for who has each go to where that is.
type Reader struct {
	// Cwd is the working directory of sessions that name none.
	Cwd string
	// Kernel is the name that a kernelspec has in keys. nil: the name itself.
	Kernel func(name string) string
	// To has a request go to where its target is. h is who answers one that is about nothing
	// which can be anywhere: it says what is wrong with it.
	To func(w http.ResponseWriter, r *http.Request, h http.Handler, t Target)
	// No refuses a request.
	No func(ctx context.Context, w http.ResponseWriter, err error)
}

// Target is what a request is about.
type Target struct {
	Key messages.SessionKey
	// Execution is the id of the one that it starts, which may be "".
	Execution string
	// Starts says that it starts an execution, Claims that it may have its session begin.
	Starts, Claims bool
	// Made reads from its answer what it has made under other names. nil: nothing.
	Made func(answer []byte) ([]messages.SessionKey, error)
	// Streams says that its body and its answer are not read ahead, Begins that it starts
	// something all the same.
	Streams, Begins bool
	// Once says that it is done once, however often it comes.
	Once bool
	// Ends is why the session has ended when the request is done; what is kept of it ends, too.
	Ends string
	Body []byte
}

// Spent reports whether a request that was not done where it was sent cannot be sent again: its body
// may be gone.
func (t Target) Spent(r *http.Request, failed error) bool {
	_, not := errors.AsType[relay.NotDone](failed)
	return not && t.Streams && t.Body == nil && r.ContentLength != 0
}

// Routes are those about one session or about a new workspace, by their patterns: each has its
// requests go to where they belong.
func (rd Reader) Routes() map[string]func(http.Handler) http.Handler {
	byPath := Target{}
	return map[string]func(http.Handler) http.Handler{
		"POST /api/executions":    rd.named(Target{Starts: true, Claims: true}),
		"POST /api/notebooks/run": rd.named(Target{Starts: true, Claims: true}),
		"POST /api/sessions":      rd.named(Target{Claims: true}),
		WorkspacesRoute:           rd.makesWorkspace,

		"GET /api/sessions/{session}": rd.Pathed(byPath), "DELETE /api/sessions/{session}": rd.Pathed(Target{Ends: messages.SessionClosed}),
		"POST /api/sessions/{session}/interrupt": rd.Pathed(byPath), "POST /api/sessions/{session}/reset": rd.Pathed(Target{Ends: "the session was reset"}),
		"POST /api/sessions/{session}/pin": rd.Pathed(byPath), "POST /api/sessions/{session}/unpin": rd.Pathed(byPath),
		"POST /api/sessions/{session}/hibernate": rd.Pathed(byPath), "POST /api/sessions/{session}/checkpoint": rd.Pathed(byPath),
		"POST /api/sessions/{session}/fork":   rd.Pathed(Target{Made: forked}),
		"POST /api/sessions/{session}/rewind": rd.Pathed(Target{Claims: true}),
		"POST /api/sessions/{session}/save":   rd.Pathed(byPath), "POST /api/sessions/{session}/restore": rd.Pathed(Target{Claims: true}),
	}
}

// MaxBody bounds the body of a request, as that of package httpapi.
const MaxBody = 16 << 20

// named is about the session in the body of a request.
func (rd Reader) named(t Target) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
			if err != nil || len(data) > MaxBody {
				// The handler says what is wrong with it.
				r.Body = Again(data, err, r.Body)
				h.ServeHTTP(w, r)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(data))
			var in struct{ ID, Session, Cwd, Workspace, Kernel, Path string }
			if json.Unmarshal(data, &in) != nil || in.Session == "" || !messages.IsKernelspec(in.Kernel) {
				h.ServeHTTP(w, r) // which says what is wrong with it
				return
			}
			t := t
			t.Body, t.Execution, t.Key = data, in.ID, rd.SessionKey(in.Session, "", in.Kernel)
			if in.Workspace != "" { // which is there, or it does not begin
				t.Key, t.Claims = WorkspaceKey(in.Workspace), false
				rd.To(w, r, h, t)
				return
			}
			if in.Path != "" { // of a notebook: a session is in its folder
				t.Key = t.Key.In(filepath.Dir(in.Path))
			}
			t.Key = t.Key.In(in.Cwd)
			rd.To(w, r, h, t)
		})
	}
}

// SessionKey is the key of a session that belongs to no workspace.
func (rd Reader) SessionKey(session, cwd, kernel string) messages.SessionKey {
	if rd.Kernel != nil && kernel != "" {
		kernel = rd.Kernel(kernel)
	}
	return messages.SessionKey{Session: session, Cwd: rd.Cwd, Kernel: kernel}.In(cwd)
}

// Again is a body of which data was read, with that before what is left, or with err in its place
// where reading has failed.
func Again(data []byte, err error, rest io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), &failing{err, rest}), rest}
}

// failing reads what is left of a body, or fails as it did.
type failing struct {
	err  error
	rest io.Reader
}

// Read implements [io.Reader].
func (f *failing) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.rest.Read(p)
}

// Pathed is about the session in the path of a request.
func (rd Reader) Pathed(t Target) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			data, err := io.ReadAll(io.LimitReader(r.Body, MaxBody))
			if err != nil {
				rd.No(r.Context(), w, &httpserver.Refusal{Status: http.StatusBadRequest, Problem: httpserver.Problem{Code: "bad_request", Message: "the body cannot be read: " + err.Error()}})
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(data))
			if !messages.IsKernelspec(query.Get("kernel")) {
				h.ServeHTTP(w, r) // as above
				return
			}
			t := t
			t.Body = data
			t.Key = rd.SessionKey(r.PathValue("session"), query.Get("cwd"), query.Get("kernel"))
			if name := query.Get("workspace"); name != "" { // what is made and ended there is not the workspace itself
				t = Target{Key: WorkspaceKey(name), Body: data}
			}
			rd.To(w, r, h, t)
		})
	}
}

// InWorkspace has a request about a workspace served where that is. What it sends and gets is
// streamed: it is not read ahead.
func (rd Reader) InWorkspace(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rd.To(w, r, h, Target{
			Key: WorkspaceKey(r.PathValue("workspace")), Streams: true,
			Begins: r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/processes"),
		})
	})
}

// makesWorkspace has a workspace made where one of its name is, or is to begin.
func (rd Reader) makesWorkspace(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
		r.Body = Again(data, err, r.Body)
		var in struct{ Name string }
		if err != nil || len(data) > MaxBody || json.Unmarshal(data, &in) != nil || in.Name == "" {
			h.ServeHTTP(w, r) // which says what is wrong with it
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		rd.To(w, r, h, Target{Key: WorkspaceKey(in.Name), Claims: true, Body: data})
	})
}

// forked are the sessions that a fork has made, by its answer.
func forked(answer []byte) ([]messages.SessionKey, error) {
	var made struct{ Sessions []messages.SessionKey }
	err := json.Unmarshal(answer, &made)
	return made.Sessions, err
}
