package httpserver

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Refusal is an answer that says no, as an error.
type Refusal struct {
	Status int
	Problem
	// Retry is after how long the same request is worth making again; 0: it is not said.
	Retry time.Duration
}

// HeaderEpoch is in which epoch of a fleet a request means its session, or an answer has
// found it.
const HeaderEpoch = "Coppice-Epoch"

// Epoch is the epoch of a fleet that a request names; 0: none. It is a *Refusal when that
// is no number from 1. A [Server] refuses such a request outside of a fleet, too: it would
// not be better in one.
func Epoch(r *http.Request) (uint64, error) {
	const digits = 18
	values := r.Header.Values(HeaderEpoch)
	if len(values) == 0 {
		return 0, nil
	}
	e, err := strconv.ParseUint(values[0], 10, 64)
	if err != nil || len(values) > 1 || len(values[0]) > digits || values[0][0] == '0' {
		return 0, &Refusal{Status: http.StatusBadRequest, Problem: Problem{
			Code: "bad_request", Message: fmt.Sprintf("%s must be a number from 1, not %.80q", HeaderEpoch, strings.Join(values, ", ")), Hint: "leave it out, or send what an answer has said",
		}}
	}
	return e, nil
}

// misplaced is what is wrong with the headers of a request; nil: nothing.
func misplaced(r *http.Request) *Refusal {
	_, err := Epoch(r)
	no, _ := errors.AsType[*Refusal](err)
	return no
}

// Error returns the problem.
func (r *Refusal) Error() string { return r.Message }

// SayWhen sets the header of an answer that says when to make the request again, if that is said.
func (r *Refusal) SayWhen(w http.ResponseWriter) {
	if r.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.Retry.Seconds()))))
	}
}

// Answer answers a request with it.
func (r *Refusal) Answer(w http.ResponseWriter) {
	r.SayWhen(w)
	JSON(w, r.Status, map[string]any{"error": r.Problem})
}
