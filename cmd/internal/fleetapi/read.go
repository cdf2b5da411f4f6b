package fleetapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// reading finds out what requests are about, for who has each go to where that is.
type reading struct {
	// cwd is the working directory of sessions that name none.
	cwd string
	// kernel is Options.Kernel.
	kernel func(name string) string
	// to has a request go to where its target is. h is who answers one that is about nothing
	// which can be anywhere: it says what is wrong with it.
	to func(w http.ResponseWriter, r *http.Request, h http.Handler, t target)
	// no refuses a request.
	no func(ctx context.Context, w http.ResponseWriter, err error)
}

// target is what a request is about.
type target struct {
	key messages.SessionKey
	// execution is the id of the one that it starts, which may be "".
	execution string
	// starts says that it starts an execution, claims that it may have its session begin.
	starts, claims bool
	// made reads from its answer what it has made under other names. nil: nothing.
	made func(answer []byte) ([]messages.SessionKey, error)
	// streams says that its body and its answer are not read ahead, begins that it starts
	// something all the same.
	streams, begins bool
	// once says that it is done once, however often it comes.
	once bool
	// ends is why the session has ended when the request is done; what is kept of it ends, too.
	ends string
	body []byte
}

// routes are those about one session or about a new workspace, by their patterns: each has its
// requests go to where they belong.
func (rd reading) routes() map[string]func(http.Handler) http.Handler {
	byPath := target{}
	return map[string]func(http.Handler) http.Handler{
		"POST /api/executions":    rd.named(target{starts: true, claims: true}),
		"POST /api/notebooks/run": rd.named(target{starts: true, claims: true}),
		"POST /api/sessions":      rd.named(target{claims: true}),
		workspacesRoute:           rd.makesWorkspace,

		"GET /api/sessions/{session}": rd.pathed(byPath), "DELETE /api/sessions/{session}": rd.pathed(target{ends: messages.SessionClosed}),
		"POST /api/sessions/{session}/interrupt": rd.pathed(byPath), "POST /api/sessions/{session}/reset": rd.pathed(target{ends: "the session was reset"}),
		"POST /api/sessions/{session}/pin": rd.pathed(byPath), "POST /api/sessions/{session}/unpin": rd.pathed(byPath),
		"POST /api/sessions/{session}/hibernate": rd.pathed(byPath), "POST /api/sessions/{session}/checkpoint": rd.pathed(byPath),
		"POST /api/sessions/{session}/fork":   rd.pathed(target{made: forked}),
		"POST /api/sessions/{session}/rewind": rd.pathed(target{claims: true}),
		"POST /api/sessions/{session}/save":   rd.pathed(byPath), "POST /api/sessions/{session}/restore": rd.pathed(target{claims: true}),
	}
}

// maxBody bounds the body of a request, as that of package httpapi.
const maxBody = 16 << 20

// named is about the session in the body of a request.
func (rd reading) named(t target) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
			if err != nil || len(data) > maxBody {
				// The handler says what is wrong with it.
				r.Body = struct {
					io.Reader
					io.Closer
				}{io.MultiReader(bytes.NewReader(data), &failing{err, r.Body}), r.Body}
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
			t.body, t.execution, t.key = data, in.ID, rd.sessionKey(in.Session, "", in.Kernel)
			if in.Workspace != "" { // which is there, or it does not begin
				t.key, t.claims = workspaceKey(in.Workspace), false
				rd.to(w, r, h, t)
				return
			}
			if in.Path != "" { // of a notebook: a session is in its folder
				t.key = t.key.In(filepath.Dir(in.Path))
			}
			t.key = t.key.In(in.Cwd)
			rd.to(w, r, h, t)
		})
	}
}

// sessionKey is the key of a session that belongs to no workspace.
func (rd reading) sessionKey(session, cwd, kernel string) messages.SessionKey {
	if rd.kernel != nil && kernel != "" {
		kernel = rd.kernel(kernel)
	}
	return messages.SessionKey{Session: session, Cwd: rd.cwd, Kernel: kernel}.In(cwd)
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

// pathed is about the session in the path of a request.
func (rd reading) pathed(t target) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
			if err != nil {
				rd.no(r.Context(), w, refusal(http.StatusBadRequest, "bad_request", "the body cannot be read: "+err.Error(), "", 0))
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(data))
			if !messages.IsKernelspec(query.Get("kernel")) {
				h.ServeHTTP(w, r) // as above
				return
			}
			t := t
			t.body = data
			t.key = rd.sessionKey(r.PathValue("session"), query.Get("cwd"), query.Get("kernel"))
			if name := query.Get("workspace"); name != "" { // what is made and ended there is not the workspace itself
				t = target{key: workspaceKey(name), body: data}
			}
			rd.to(w, r, h, t)
		})
	}
}

// inWorkspace has a request about a workspace served where that is. What it sends and gets is
// streamed: it is not read ahead.
func (rd reading) inWorkspace(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rd.to(w, r, h, target{
			key: workspaceKey(r.PathValue("workspace")), streams: true,
			begins: r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/processes"),
		})
	})
}

// makesWorkspace has a workspace made where one of its name is, or is to begin.
func (rd reading) makesWorkspace(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(data), &failing{err, r.Body}), r.Body}
		var in struct{ Name string }
		if err != nil || len(data) > maxBody || json.Unmarshal(data, &in) != nil || in.Name == "" {
			h.ServeHTTP(w, r) // which says what is wrong with it
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		rd.to(w, r, h, target{key: workspaceKey(in.Name), claims: true, body: data})
	})
}
