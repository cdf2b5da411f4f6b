package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/sinks/artifact"
)

// maxBody bounds the body of a request, in bytes; bodyTime how long it may take.
const (
	maxBody  = 16 << 20
	bodyTime = time.Minute
)

// body reads the body of a request into to, or answers with what is wrong with it.
func (a *API) body(w http.ResponseWriter, r *http.Request, to any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		httpserver.Error(w, http.StatusUnsupportedMediaType, "not_json", "the body is not said to be JSON", "send the header Content-Type: application/json")
		return false
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a test's recorder has none
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		httpserver.Error(w, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is larger than %d bytes", maxBody), "put large data into a file")
		return false
	}
	if err == nil {
		err = decode(data, to)
	}
	if err != nil {
		httpserver.Error(w, http.StatusBadRequest, "bad_request", "the body cannot be read: "+err.Error(), "GET /api/openapi.json describes it")
		return false
	}
	return true
}

// decode reads one JSON value with known members and nothing after it.
func decode(data []byte, to any) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its value")
	}
	return nil
}

// badRequest is what a client did wrong.
type badRequest struct{ problem, hint string }

// Error returns the problem.
func (e badRequest) Error() string { return e.problem }

// problem answers with an error.
func (a *API) problem(w http.ResponseWriter, err error) {
	status, code, hint := http.StatusInternalServerError, "internal", ""
	refused, isFork := errors.AsType[*messages.ForkRefused](err)
	_, isRequest := errors.AsType[*coppice.RequestError](err)
	bad, isBad := errors.AsType[badRequest](err)
	_, isNotebook := errors.AsType[*notebook.Error](err)
	switch {
	case isBad:
		status, code, hint = http.StatusBadRequest, "bad_request", bad.hint
	case isFork:
		status, code, hint = http.StatusConflict, "fork_refused", string(refused.Reason)
	case isRequest:
		status, code = http.StatusBadRequest, "bad_request"
	case errors.Is(err, coppice.ErrNoRoom), errors.Is(err, errOverloaded):
		status, code = http.StatusServiceUnavailable, "overloaded"
	case errors.Is(err, errNotFound), errors.Is(err, artifact.ErrNotFound), errors.Is(err, artifact.ErrNoDirectory), errors.Is(err, notebook.ErrNotFound):
		status, code = http.StatusNotFound, "not_found"
	case errors.Is(err, artifact.ErrBadID), errors.Is(err, artifact.ErrNoID), errors.Is(err, artifact.ErrBadRange):
		status, code = http.StatusBadRequest, "bad_request"
	case errors.Is(err, errConflict), errors.Is(err, notebook.ErrChanged), errors.Is(err, notebook.ErrLocked):
		status, code = http.StatusConflict, "conflict"
	case isNotebook, errors.Is(err, coppice.ErrLanguage):
		status, code = http.StatusUnprocessableEntity, "notebook"
	case errors.Is(err, coppice.ErrClosed):
		status, code = http.StatusServiceUnavailable, "draining"
	default:
		a.o.Logger.Error("a request failed", "err", err)
	}
	httpserver.Error(w, status, code, err.Error(), hint)
}

// The errors of lookups.
var (
	errNotFound   = errors.New("there is none")
	errConflict   = errors.New("it exists already")
	errOverloaded = errors.New("there is no place")
)
