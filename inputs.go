package coppice

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// InputHandler answers a question of a call's code: a line, without its end.
// With an error input() raises EOFError. ctx ends when the question is answered
// otherwise, has waited for too long, or its cell has ended. It is called in a
// goroutine of its own; several questions may wait at once.
type InputHandler func(ctx context.Context, q messages.InputRequest) (string, error)

// keptQuestions is how many questions that are over are remembered, so that a
// late answer is told what happened.
const keptQuestions = 1024

// maxLine is the longest answer to a question, in bytes.
const maxLine = 1 << 20

// inputs are the questions of a host's calls. Any goroutine may use them.
//
// The life of a question:
//
//	waiting ──submit, handler──▶ answered
//	   └──idle, the cell ended──▶ expired
type inputs struct {
	mu   sync.Mutex
	open map[string]*question            // guarded by mu
	past map[string]messages.InputStatus // how questions ended; guarded by mu
	ring []string                        // the keys of past, in order; guarded by mu
	next int                             // where ring is written next; guarded by mu
}

// question is one that waits.
type question struct {
	key    messages.SessionKey
	answer chan messages.InputAnswer // has room for one; sent to once, by whoever takes the question out of open
}

func newInputs() *inputs {
	return &inputs{open: map[string]*question{}, past: map[string]messages.InputStatus{}, ring: make([]string, keptQuestions)}
}

// put registers a question.
func (in *inputs) put(key messages.SessionKey, id string) *question {
	q := &question{key: key, answer: make(chan messages.InputAnswer, 1)}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.open[id] = q
	return q
}

// settle ends a question, unless it is over.
func (in *inputs) settle(id string, a messages.InputAnswer) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.settleLocked(id, a)
}

func (in *inputs) settleLocked(id string, a messages.InputAnswer) bool {
	q := in.open[id]
	if q == nil {
		return false
	}
	delete(in.open, id)
	if old := in.ring[in.next]; old != "" {
		delete(in.past, old)
	}
	in.ring[in.next], in.past[id] = id, a.Status
	in.next = (in.next + 1) % len(in.ring)
	q.answer <- a
	return true
}

// submit answers a question of a session, or of any when key is nil.
func (in *inputs) submit(key *messages.SessionKey, id, value string) messages.InputStatus {
	in.mu.Lock()
	defer in.mu.Unlock()
	if q := in.open[id]; q != nil && key != nil && q.key != *key {
		return messages.InputUnknown
	}
	if in.settleLocked(id, messages.InputAnswer{Value: value, Status: messages.InputAccepted}) {
		return messages.InputAccepted
	}
	switch in.past[id] {
	case messages.InputAccepted:
		return messages.InputAnswered
	case messages.InputExpired:
		return messages.InputExpired
	default:
		return messages.InputUnknown
	}
}

// inputLine is an answer as input() returns it: one line without its end.
func inputLine(value string) (string, error) {
	value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
	switch {
	case len(value) > maxLine:
		return "", &RequestError{"value", "the answer is longer than 1 MiB; put it in a file and answer with its name"}
	case !utf8.ValidString(value):
		return "", &RequestError{"value", "the answer is not valid UTF-8"}
	}
	return value, nil
}

// Ask registers a question of the call's code; see messages.Desk.
func (d *desk) Ask(ctx context.Context, r messages.InputRequest) <-chan messages.InputAnswer {
	in, id := d.host.inputs, r.ID
	q := in.put(d.exec.Key, id)
	ctx, cancel := context.WithCancel(ctx)
	answered := make(chan messages.InputAnswer, 1)
	d.host.functions.start("input", func() { // ends with the answer
		defer cancel()
		idle := time.NewTimer(d.exec.InputTimeout)
		defer idle.Stop()
		select {
		case a := <-q.answer:
			answered <- a
			return
		case <-idle.C:
			in.settle(id, messages.InputAnswer{Status: messages.InputExpired, Idle: d.exec.InputTimeout})
		case <-ctx.Done():
			in.settle(id, messages.InputAnswer{Status: messages.InputExpired})
		}
		answered <- <-q.answer
	})
	if d.input != nil {
		d.host.functions.start("input handler", func() { // ends with the handler, which is told when nobody waits any more
			var value string
			supervisor.Guarded(func() (err error) {
				if value, err = d.input(ctx, r); err == nil {
					value, err = inputLine(value)
				}
				return err
			}, func(err error) {
				switch {
				case err == nil:
					in.settle(id, messages.InputAnswer{Value: value, Status: messages.InputAccepted})
				case ctx.Err() == nil:
					d.host.o.Logger.Debug("an input handler gave no answer", "err", err)
					in.settle(id, messages.InputAnswer{Status: messages.InputExpired})
				}
			})
		})
	}
	return answered
}
