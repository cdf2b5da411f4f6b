package run

import (
	"encoding/json"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// Report tells how a run ended. Its JSON form is that of `coppice notebook run
// --json`.
type Report struct {
	// Outcome is ok when every chosen cell ran, or raised where that was
	// allowed; else it is that of the cell that ended the run.
	Outcome messages.Outcome `json:"outcome"`
	// Reason says more about an outcome that is neither ok nor error.
	Reason string `json:"reason,omitempty"`
	// Backend is gateway or runner; empty when nothing was run.
	Backend string `json:"backend"`
	// Cells has an entry for each cell that was chosen, in order.
	Cells []Cell `json:"cells"`
	// Next is the index of the first chosen cell that did not complete, from
	// which a later run can go on; -1 when all did.
	Next int `json:"next"`
	// Duration is how long all of it took; in JSON, duration_ms.
	Duration time.Duration `json:"-"`
	// Last is the result of the last call; zero when nothing was run.
	Last messages.Result `json:"-"`
}

// MarshalJSON writes the report with its cells as [] when there are none.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	if r.Cells == nil {
		r.Cells = []Cell{}
	}
	return json.Marshal(struct {
		plain
		DurationMS int64 `json:"duration_ms"`
	}{plain(r), r.Duration.Milliseconds()})
}

// Count returns how many cells had an outcome.
func (r Report) Count(o messages.Outcome) int {
	n := 0
	for _, c := range r.Cells {
		if c.Outcome == o {
			n++
		}
	}
	return n
}

// Cell tells how one cell ended.
type Cell struct {
	// Index is the cell's index in the document, ID its id if it has one.
	Index int    `json:"index"`
	ID    string `json:"id,omitempty"`
	// Outcome is not_started for a cell that the run did not get to.
	Outcome messages.Outcome `json:"outcome"`
	// Expected says that the cell raised and the run went on.
	Expected bool `json:"expected,omitempty"`
	// Count is the cell's prompt number, 0 when it has none.
	Count int `json:"execution_count,omitempty"`
	// Duration is how long it ran, without the start of its kernel; of a cell that
	// did not end, how long its call took. In JSON, duration_ms.
	Duration time.Duration `json:"-"`
	// Error is set when the cell raised.
	Error *messages.ErrorDetails `json:"error,omitempty"`
	// Omitted is how many bytes of output were over MaxOutput.
	Omitted int64 `json:"omitted_bytes,omitempty"`
}

// MarshalJSON writes the cell with its duration in milliseconds.
func (c Cell) MarshalJSON() ([]byte, error) {
	type plain Cell
	return json.Marshal(struct {
		plain
		DurationMS int64 `json:"duration_ms"`
	}{plain(c), c.Duration.Milliseconds()})
}
