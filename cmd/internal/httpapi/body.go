package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/workspace"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 16 << 20

// body reads the body of a request into to, or answers with what is wrong with it.
func (a *API) body(w http.ResponseWriter, r *http.Request, to any) bool {
	return httpserver.Body(w, r, maxBody, to)
}

// badRequest is what a client did wrong: the document forbids it.
type badRequest struct{ problem, hint string }

// Error returns the problem.
func (e badRequest) Error() string { return e.problem }

// unfit is what the document allows, and the server cannot do all the same.
type unfit badRequest

// Error returns the problem.
func (e unfit) Error() string { return e.problem }

// problem answers with an error.
func (a *API) problem(w http.ResponseWriter, err error) {
	status, code, hint := http.StatusInternalServerError, "internal", ""
	refused, isFork := errors.AsType[*messages.ForkRefused](err)
	asleep, isHibernate := errors.AsType[*messages.HibernateRefused](err)
	restore, isRestore := errors.AsType[*messages.RestoreRefused](err)
	request, isRequest := errors.AsType[*coppice.RequestError](err)
	bad, isBad := errors.AsType[badRequest](err)
	up, isUp := errors.AsType[*notUp](err)
	wrong, isUnfit := errors.AsType[unfit](err)
	_, noCheckpoint := errors.AsType[unknownCheckpoint](err)
	gone, isGone := errors.AsType[*workspace.EndedError](err)
	elsewhere, isElsewhere := errors.AsType[*httpserver.Refusal](err)
	_, isNotebook := errors.AsType[*notebook.Error](err)
	switch {
	case isElsewhere:
		elsewhere.Answer(w)
		return
	case isRequest && request.Field == "workspace", // there is none of that name
		noCheckpoint, errors.Is(err, errNotFound), errors.Is(err, coppice.ErrNoCheckpoint): // also where something else is the reason of that
		status, code = http.StatusNotFound, "not_found"
	case errors.Is(err, errBusy): // whatever else is the reason: who asks can do without
		status, code, hint = http.StatusConflict, "busy", "ask again when it is idle"
	case isGone && gone.Reason == workspace.ReasonShutdown:
		status, code = http.StatusServiceUnavailable, "draining"
	case isGone:
		status, code, hint = http.StatusUnprocessableEntity, "ended", string(gone.Reason)
	case isBad:
		status, code, hint = http.StatusBadRequest, "bad_request", bad.hint
	case isUnfit:
		status, code, hint = http.StatusUnprocessableEntity, "bad_request", wrong.hint
	case isFork:
		status, code, hint = http.StatusConflict, "fork_refused", string(refused.Reason)
	case isRestore && !errors.Is(err, coppice.ErrNoRoom) && !errors.Is(err, messages.ErrOverloaded) && !errors.Is(err, coppice.ErrClosed):
		status, code, hint = http.StatusConflict, "restore_refused", string(restore.Reason)
	case isHibernate:
		status, code, hint = http.StatusConflict, "hibernate_refused", string(asleep.Reason)
	case isRequest, errors.Is(err, artifact.ErrBadRange):
		status, code = http.StatusUnprocessableEntity, "bad_request"
	case isUp && !errors.Is(err, messages.ErrOverloaded):
		status, code, hint = http.StatusServiceUnavailable, "not_started", string(up.result.Remedy)
	case errors.Is(err, coppice.ErrNoRoom), errors.Is(err, messages.ErrOverloaded), errors.Is(err, errOverloaded):
		status, code = http.StatusServiceUnavailable, "overloaded"
	case errors.Is(err, artifact.ErrNotFound), errors.Is(err, artifact.ErrNoDirectory), errors.Is(err, notebook.ErrNotFound):
		status, code = http.StatusNotFound, "not_found"
	case errors.Is(err, artifact.ErrBadID), errors.Is(err, artifact.ErrNoID):
		status, code = http.StatusBadRequest, "bad_request"
	case errors.Is(err, errConflict), errors.Is(err, notebook.ErrChanged), errors.Is(err, notebook.ErrLocked):
		status, code = http.StatusConflict, "conflict"
	case isNotebook, errors.Is(err, run.ErrLanguage), errors.Is(err, errFile):
		status, code = http.StatusUnprocessableEntity, "notebook"
	case errors.Is(err, coppice.ErrClosed):
		status, code = http.StatusServiceUnavailable, "draining"
	default:
		a.o.Logger.Error("a request failed", "err", err)
	}
	httpserver.Error(w, status, code, err.Error(), hint)
}

// noKernel says that a session that is asked about is none of those that have a kernel.
type noKernel struct{ key messages.SessionKey }

// Error says so, and how to find those that have one.
func (e noKernel) Error() string {
	return fmt.Sprintf("no session %s has a kernel; it may have ended, be kept on disk until its next call, or have another working directory: coppice sessions list (GET /api/sessions) has those that there are", e.key)
}

// Is matches what is not there.
func (noKernel) Is(target error) bool { return target == errNotFound }

// notUp says that a session has no kernel that it was to have.
type notUp struct {
	key    messages.SessionKey
	result messages.Result
}

// Error says why.
func (e *notUp) Error() string {
	return fmt.Sprintf("there is no kernel for the session %s: %s", e.key, e.result.Reason)
}

// Unwrap returns the error of the call.
func (e *notUp) Unwrap() error { return e.result.Err() }

// The errors of lookups.
var (
	errNotFound   = errors.New("there is none")
	errConflict   = errors.New("it exists already")
	errOverloaded = errors.New("there is no place")
	errFile       = errors.New("the file cannot be used")
)
