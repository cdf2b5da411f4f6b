package hostcall

import (
	"context"
	"errors"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/coppice-run/coppice/messages"
)

// InputHandler answers a question of a call's code: a line, without its end.
// With an error input() raises EOFError, which has the text of all but io.EOF. ctx ends when the question is answered
// otherwise, has waited for too long, or its cell has ended. It is called in a
// goroutine of its own; several questions may wait at once.
type InputHandler func(ctx context.Context, q messages.InputRequest) (string, error)

// keptQuestions is how many questions that are over are remembered, so that a late
// answer gets an error that says what happened.
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

// Submit answers the question with this id of a session, or of any when key is nil,
// with a line that [Line] has made. Exactly one answer is accepted; the status says
// what became of this one. Any goroutine may call it.
func (h *Host) Submit(key *messages.SessionKey, id, value string) messages.InputStatus {
	return h.inputs.submit(key, id, value)
}

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

// Line is an answer as input() returns it: one line without its end.
func Line(value string) (string, error) {
	value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
	switch {
	case len(value) > maxLine:
		return "", errors.New("the answer is longer than 1 MiB; put it in a file and answer with its name")
	case !utf8.ValidString(value):
		return "", errors.New("the answer is not valid UTF-8")
	case strings.Contains(value, "\n"):
		return "", errors.New("the answer has more than one line, and input() reads one; answer each question with a line of its own")
	}
	return value, nil
}
