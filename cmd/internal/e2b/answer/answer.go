// Package answer has the form in which E2B's API answers: values as JSON, and errors as
// an object with the status and a sentence, which its clients show to their users.
package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// Gone is what a client reads of a sandbox that has ended, or that never was. Its words
// are those by which the clients tell it from a server that cannot be reached.
const Gone = "the sandbox was not found"

// problem is an error.
type problem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	// Sandbox is the one that was not found.
	Sandbox string `json:"sandboxId,omitempty"`
}

// Error answers with an error.
func Error(w http.ResponseWriter, status int, message string) {
	JSON(w, status, problem{Code: status, Message: message})
}

// Ended answers a request to a sandbox that is not there: 502, as what stands before
// E2B's sandboxes does, of which its clients make that the sandbox has ended.
func Ended(w http.ResponseWriter, sandbox string) {
	JSON(w, http.StatusBadGateway, problem{Code: http.StatusBadGateway, Message: Gone, Sandbox: sandbox})
}

// JSON answers with a value.
func JSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the answer could not be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // who has gone cannot be told
}

// Body reads the body of a request, one JSON value of at most that many bytes, into to.
// No body is as good as an empty object, and members that are not known are left out:
// clients of all versions ask. Otherwise it answers with what is wrong, and returns false.
func Body(w http.ResponseWriter, r *http.Request, most int64, to any) bool {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		Error(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", most))
		return false
	}
	if err != nil {
		Error(w, http.StatusBadRequest, "the body cannot be read: "+err.Error())
		return false
	}
	if len(data) == 0 {
		return true
	}
	// A page of another origin cannot say that it sends JSON, without being asked first.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		Error(w, http.StatusUnsupportedMediaType, "the body is not said to be JSON")
		return false
	}
	if err := json.Unmarshal(data, to); err != nil {
		Error(w, http.StatusBadRequest, "the body cannot be read: "+err.Error())
		return false
	}
	return true
}
