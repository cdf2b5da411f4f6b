package toolapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// Options make a handler.
type Options struct {
	// Tools is the launcher. Required.
	Tools *launcher.Launcher
	// Developer shows the state of the launcher.
	Developer bool
}

// handler serves the routes.
type handler struct {
	o     Options
	began time.Time
}

// statusOf is the HTTP status of a result.
func statusOf(r messages.ToolResult) int {
	if r.Error == nil {
		return http.StatusOK
	}
	switch r.Error.Kind {
	case messages.ToolErrorNotFound:
		return http.StatusNotFound
	case messages.ToolErrorInput:
		return http.StatusUnprocessableEntity
	case messages.ToolErrorCancelled:
		return http.StatusConflict
	case messages.ToolErrorOverloaded, messages.ToolErrorDraining:
		return http.StatusServiceUnavailable
	case messages.ToolErrorRuntime:
		return http.StatusGatewayTimeout
	case messages.ToolErrorMemory, messages.ToolErrorArtifacts:
		return http.StatusInsufficientStorage
	default:
		return http.StatusBadGateway
	}
}

// problem answers with an error of the launcher.
func problem(w http.ResponseWriter, err error) {
	told, ok := errors.AsType[*messages.ToolError](err)
	switch {
	case ok:
		httpserver.Error(w, statusOf(messages.ToolResult{Error: told}), string(told.Kind), told.Message, told.Hint)
	case errors.Is(err, launcher.ErrClosed):
		httpserver.Error(w, http.StatusServiceUnavailable, "draining", err.Error(), "")
	default:
		httpserver.Error(w, http.StatusInternalServerError, "internal", err.Error(), "")
	}
}
