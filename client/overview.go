package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// Overview is how a server is as a whole: for a page or a screen that a person looks at.
type Overview struct {
	// At is when it was made.
	At time.Time `json:"at"`
	// StepSeconds is how long one sample stands for. Newest is the number of the newest
	// sample, Samples are those that were asked for, oldest first; the server keeps
	// those of an hour.
	StepSeconds float64  `json:"step_seconds"`
	Newest      uint64   `json:"newest"`
	Samples     []Sample `json:"samples"`
	Limits      Limits   `json:"limits"`
	// Hibernated is how many sessions are kept on disk, or were a few seconds ago.
	Hibernated int `json:"hibernated,omitempty"`
	// Problems are what a person should look at, the worst first; MoreProblems is how
	// many more there are.
	Problems     []Problem `json:"problems"`
	MoreProblems int       `json:"more_problems,omitempty"`
	// Marks are of the sessions of which there is something to say.
	Marks []Mark `json:"marks"`
}

// Sample is what was counted in one step, and how the server was at its end.
type Sample struct {
	// Seq numbers the samples of a server from 1.
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
	// Sessions counts sessions by their state, Queue the calls that waited for them.
	Sessions map[messages.ChildState]int `json:"sessions,omitempty"`
	Queue    int                         `json:"queue,omitempty"`
	// Calls counts the calls that ended in the step, by outcome; P50 and P99 are how
	// long half of them and 99 of 100 took at most, in milliseconds. 0: none ended.
	Calls map[messages.Outcome]int `json:"calls,omitempty"`
	P50   float64                  `json:"p50_ms,omitempty"`
	P99   float64                  `json:"p99_ms,omitempty"`
	// What became of kernels in the step.
	Starts    int `json:"starts,omitempty"`
	Restarts  int `json:"restarts,omitempty"`
	Deaths    int `json:"deaths,omitempty"`
	Evictions int `json:"evictions,omitempty"`
	// RSS is the memory of all sessions in bytes, CPU the processor time that they used
	// in percent of one processor, Pressure as in [messages.Busy].
	RSS      int64   `json:"rss,omitempty"`
	CPU      float64 `json:"cpu_percent,omitempty"`
	Pressure float64 `json:"pressure,omitempty"`
}

// Limits are what a server may use. 0: not limited, or not known.
type Limits struct {
	Sessions int `json:"sessions,omitempty"`
	// Memory is that of the machine or of the server's control group, in bytes.
	Memory int64 `json:"memory,omitempty"`
	// CPUs is how many processors there are.
	CPUs int `json:"cpus,omitempty"`
	// Fork says that sessions can be copied.
	Fork bool `json:"fork,omitempty"`
}

// Level says how much a problem or a session needs a person.
type Level string

// The levels, from the worst to the least.
const (
	LevelBad   Level = "bad"   // refuses calls, or is lost
	LevelAsks  Level = "asks"  // code waits for the answer of a person
	LevelShaky Level = "shaky" // something failed, and no call has gone well since
)

// Problem is something that a person should look at.
type Problem struct {
	Level Level `json:"level"`
	// Kind names it for programs: refused, hung, died, asks, server, limit, machine,
	// queue, long.
	Kind string `json:"kind"`
	// Key is the session that it is about; the zero key: the server itself.
	Key   messages.SessionKey `json:"key"`
	Since time.Time           `json:"since,omitzero"`
	// Until is when a question expires.
	Until time.Time `json:"until,omitzero"`
	// What is the case, and what can be done, each a sentence.
	What string `json:"what"`
	Do   string `json:"do"`
}

// Mark is what is known of a session besides its kernel's place in the tree.
type Mark struct {
	Key   messages.SessionKey `json:"key"`
	Level Level               `json:"level,omitempty"`
	// Why is the reason for the level.
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Question is what its code asks a person now.
	Question *Question `json:"question,omitempty"`
	// Parent is the name of the session that it is a copy of, in the same directory.
	Parent string `json:"parent,omitempty"`
}

// Question is one that code asks with input().
type Question struct {
	// Execution is the call that waits, ID the question's.
	Execution string `json:"execution"`
	ID        string `json:"id"`
	Prompt    string `json:"prompt"`
	Password  bool   `json:"password,omitempty"`
	// Asked is when, Until when it expires; zero: it does not.
	Asked time.Time `json:"asked"`
	Until time.Time `json:"until,omitzero"`
}

// Story is what became of a session's state, and why: the newest moments, oldest first.
type Story struct {
	Key     messages.SessionKey `json:"key"`
	Moments []Moment            `json:"moments"`
	// Forgotten counts older moments that the server no longer has.
	Forgotten int `json:"forgotten,omitempty"`
}

// Moment is one event in the life of a session.
type Moment struct {
	At time.Time `json:"at"`
	// What happened: started, restarted, died, hung, refused, evicted, hibernated, reset,
	// closed, ended, copied (it is a copy), forked (a copy was made of it), asked, lost (a call).
	What string `json:"what"`
	// Why is the reason, and what it means for the session's variables.
	Why   string `json:"why,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
	PID   int    `json:"pid,omitempty"`
}

// Overview asks how the server is as a whole, with the samples after the one with the
// number after; 0: all that the server has.
func (c *Client) Overview(ctx context.Context, after uint64) (Overview, error) {
	query := url.Values{}
	if after > 0 {
		query.Set("after", strconv.FormatUint(after, 10))
	}
	var o Overview
	err := c.ask(ctx, http.MethodGet, "api/overview", query, nil, &o)
	return o, err
}

// Story asks what became of a session, also of one that has ended. It is empty where the
// server knows nothing of it.
func (c *Client) Story(ctx context.Context, key messages.SessionKey) (Story, error) {
	if key.Session == "" {
		return Story{}, ErrNoSession
	}
	query := url.Values{"session": {key.Session}}
	if key.Cwd != "" {
		query.Set("cwd", key.Cwd)
	}
	within(query, key)
	var s Story
	err := c.ask(ctx, http.MethodGet, "api/story", query, nil, &s)
	return s, err
}
