package workspaceapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/inbound"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/files"
	"github.com/coppice-run/coppice/workspace/procs"
)

// refusal is what is wrong with a request, as it is answered.
type refusal struct {
	status              int
	code, problem, hint string
}

// Error returns the problem.
func (e *refusal) Error() string { return e.problem }

// bad is what the document forbids.
func bad(hint, problem string, args ...any) error {
	return &refusal{http.StatusBadRequest, "bad_request", fmt.Sprintf(problem, args...), hint}
}

// unfit is what the document allows, and what cannot be done all the same.
func unfit(hint, problem string, args ...any) error {
	return &refusal{http.StatusUnprocessableEntity, "bad_request", fmt.Sprintf(problem, args...), hint}
}

// answers are the statuses and codes of errors, the first that matches. What is around
// others stands before them.
var answers = []struct {
	err    error
	status int
	code   string
	hint   string
}{
	{workspace.ErrUnknown, http.StatusNotFound, "not_found", "POST /api/workspaces or coppice workspace create makes one"},
	{workspace.ErrUnknownProcess, http.StatusNotFound, "not_found", ""},
	{workspace.ErrNoPlace, http.StatusServiceUnavailable, "overloaded", ""},
	{coppice.ErrClosed, http.StatusServiceUnavailable, "draining", ""},
	{coppice.ErrOptions, http.StatusUnprocessableEntity, "bad_request", ""},
	{errNotProven, http.StatusUnprocessableEntity, "bad_request", ""},
	{procs.ErrAhead, http.StatusUnprocessableEntity, "bad_request", "start with 0"},
	{procs.ErrSignal, http.StatusBadRequest, "bad_request", "use INT, TERM, KILL, HUP, QUIT, USR1, USR2, STOP, CONT or WINCH"},
	{procs.ErrOver, http.StatusConflict, "ended", ""},
	{procs.ErrNoInput, http.StatusConflict, "no_input", `start it with "input": true, or with a terminal`},
	{procs.ErrNoTerminal, http.StatusConflict, "no_terminal", `start it with "terminal"`},
	{inbound.ErrEnding, http.StatusRequestTimeout, "too_slow", ""},
	{os.ErrDeadlineExceeded, http.StatusRequestTimeout, "too_slow", "send on without such a pause"},
	{errChanged, http.StatusPreconditionFailed, "changed", "ask for the file again"},
	{io.ErrUnexpectedEOF, http.StatusBadRequest, "bad_request", "send the whole body"},
	{files.ErrOutside, http.StatusForbidden, "outside", "name a path in the folder of the workspace, relative to it"},
	{files.ErrLink, http.StatusForbidden, "symlink", ""},
	{files.ErrPath, http.StatusUnprocessableEntity, "bad_path", ""},
	{files.ErrQuota, http.StatusRequestEntityTooLarge, "quota", "remove something, or make a workspace with a larger quota_bytes"},
	{files.ErrNoSpace, http.StatusRequestEntityTooLarge, "no_space", "make room on the disk of the server"},
	{files.ErrIsDir, http.StatusConflict, "is_directory", ""},
	{files.ErrNotDir, http.StatusConflict, "not_directory", ""},
	{files.ErrNotEmpty, http.StatusConflict, "not_empty", "add all=true to remove it with all that is in it"},
	{fs.ErrExist, http.StatusConflict, "exists", ""},
	{fs.ErrNotExist, http.StatusNotFound, "not_found", ""},
	{fs.ErrPermission, http.StatusForbidden, "forbidden", ""},
	{context.Canceled, http.StatusServiceUnavailable, "draining", ""}, // by the server's end: a client that has gone hears nothing
}

// meaning is an error as it is answered; nil: it is the server's own.
func meaning(err error) *refusal {
	if told, ok := errors.AsType[*refusal](err); ok {
		return told
	}
	if e, ok := errors.AsType[*workspace.EndedError](err); ok {
		return &refusal{http.StatusGone, "ended", e.Error(), string(e.Reason)}
	}
	if e, ok := errors.AsType[*workspace.ExistsError](err); ok {
		return &refusal{http.StatusConflict, "conflict", e.Error(), ""}
	}
	if e, ok := errors.AsType[*workspace.OptionsError](err); ok {
		return &refusal{http.StatusUnprocessableEntity, "bad_request", e.Error(), ""}
	}
	if e, ok := errors.AsType[*procs.StartError](err); ok {
		return &refusal{http.StatusUnprocessableEntity, "not_started", e.Error(), ""}
	}
	if file.IsNotRegular(err) {
		return &refusal{http.StatusForbidden, "not_regular", err.Error(), ""}
	}
	for _, one := range answers {
		if errors.Is(err, one.err) {
			return &refusal{one.status, one.code, err.Error(), one.hint}
		}
	}
	return nil
}

// problem answers with an error.
func (h *handler) problem(w http.ResponseWriter, r *http.Request, err error) {
	told := meaning(err)
	if told == nil {
		told = &refusal{http.StatusInternalServerError, "internal", err.Error(), ""}
		if r.Context().Err() == nil { // else the client has gone, and no one hears the answer
			h.o.Logger.Error("a request about a workspace failed", "err", err)
		}
	}
	httpserver.Error(w, told.status, told.code, told.problem, told.hint)
}
