package httpserver

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Refusal is an answer that says no, as an error.
type Refusal struct {
	Status int
	Problem
	// Retry is after how long the same request is worth making again; 0: it is not said.
	Retry time.Duration
}

// Error returns the problem.
func (r *Refusal) Error() string { return r.Message }

// Answer answers a request with it.
func (r *Refusal) Answer(w http.ResponseWriter) {
	if r.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.Retry.Seconds()))))
	}
	JSON(w, r.Status, map[string]any{"error": r.Problem})
}
