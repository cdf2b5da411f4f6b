package procs

import (
	"encoding/json"
	"fmt"
	"time"
)

// EventKind is what happened.
type EventKind string

// The events. Output of a process with a terminal is EventTerminal, that of others
// EventStdout and EventStderr. EventEnd is the last.
const (
	EventStdout   EventKind = "stdout"
	EventStderr   EventKind = "stderr"
	EventTerminal EventKind = "terminal"
	EventGap      EventKind = "gap"
	EventEnd      EventKind = "end"
)

// Event is one piece of output, or the end of a process.
type Event struct {
	// Seq is its number. Of an EventGap it is that of the last event that is gone.
	Seq  uint64    `json:"seq"`
	Kind EventKind `json:"type"`
	At   time.Time `json:"at,omitzero"`
	// Data is what was printed, in base64 in JSON: it need not be text.
	Data []byte `json:"data,omitempty"`
	// Exit is how the process ended; of an EventEnd alone.
	Exit *Exit `json:"exit,omitempty"`
}

// Exit is how a process ended.
type Exit struct {
	// Code is its exit code, -1 after a signal.
	Code int `json:"code"`
	// Signal is the name of the signal that ended it, "" for none.
	Signal string `json:"signal,omitempty"`
	// Reason is why it was ended from outside, "" when it was not.
	Reason string `json:"reason,omitempty"`
	// Incomplete is why output is missing, "" when all was kept: the disk was full.
	Incomplete string `json:"incomplete,omitempty"`
}

// String says it in words.
func (e Exit) String() string {
	text := fmt.Sprintf("exited with code %d", e.Code)
	if e.Signal != "" {
		text = "was ended by a signal: " + e.Signal
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text
}

// Entry is an event as it is kept: its number, and its JSON in one line.
type Entry struct {
	Seq  uint64
	JSON []byte
}

// Event reads the entry.
func (e Entry) Event() (Event, error) {
	var ev Event
	if err := json.Unmarshal(e.JSON, &ev); err != nil {
		return Event{}, fmt.Errorf("read the event %d of a process: %w", e.Seq, err)
	}
	return ev, nil
}
