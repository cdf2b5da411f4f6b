package estate

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/messages"
)

// maxLine bounds a line, in bytes: a frame of a session and what is around it.
const maxLine = 72 << 20

// Running is the last call that an earlier host has begun in a session. It may have ended.
type Running struct {
	// Exec is the call, without its variables, Bare that it had some.
	Exec messages.Execute
	Bare bool
	// News is what its result tells of how the session began; nil: it was told before.
	News *News
	// Ended are the results of the cells that have ended, in order.
	Ended []messages.CellResult
	// Begun says that the cell after them was, or was about to be, sent to the session, as
	// the one with the number ID, or with the name Ref.
	Begun bool
	ID    uint64
	Ref   string
	// At is the last event of that cell that came of a frame, and Said whether anything
	// was handed on of it, Over that its end was.
	At         Place
	Said, Over bool
	// Halves are the starts of characters whose rest has not come, by stream.
	Halves [Streams][]byte
	// Stderr is the end of what it wrote there, at most 2 KiB, Failure the error that was
	// handed on.
	Stderr  string
	Failure *messages.ErrorDetails
	// Questions are those that it waits for an answer to, Calls its calls of functions of
	// the host that were not answered.
	Questions []Question
	Calls     []uint64
	// Stop says that the call was to end, and why; "": it was not.
	Stop messages.InterruptCause
	// Events is how many events were handed on, Full that there were more.
	Events uint64
	Full   bool

	taken uint64 // the frame that was taken whole, with what it left of Halves

	size int64  // of what was read of the log
	last []byte // the seal of the last line
}

// Read reads the log of a session, nil when there was no call. Each event that was handed on is
// shown to each, in order; nil: to nobody. The error is that of each, a [*RefusedError], or
// says why the file cannot be read.
func Read(dir, name string, seal []byte, each func(messages.Event) error) (*Running, error) {
	f, err := file.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("read the log of a session: %w", err)
	}
	defer func() { _ = f.Close() }()
	return Parse(f, seal, each)
}

// Parse is Read for a log that is open.
func Parse(src io.Reader, seal []byte, each func(messages.Event) error) (*Running, error) {
	lines := bufio.NewReaderSize(io.LimitReader(src, MaxLog+maxLine+reserve), 64<<10)
	var r *Running
	mac := hmac.New(sha256.New, seal)
	for {
		text, err := next(lines)
		switch {
		case errors.Is(err, io.EOF): // what has no end was not written whole
			return r, nil
		case err != nil:
			return nil, err
		}
		if r == nil {
			r = &Running{}
		}
		if err := r.take(mac, text, each); err != nil {
			return nil, err
		}
	}
}

// next returns a line with its end.
func next(from *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := from.ReadSlice('\n')
		if err == nil && whole == nil {
			return part, nil
		}
		whole = append(whole, part...)
		switch {
		case len(whole) > maxLine:
			return nil, refusedf("a line of the log is longer than %d bytes", maxLine)
		case err == nil:
			return whole, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// take reads one line.
func (r *Running) take(mac hash.Hash, text []byte, each func(messages.Event) error) error {
	given, data, ok := bytes.Cut(bytes.TrimSuffix(text, []byte("\n")), []byte(" "))
	told, err := hex.DecodeString(string(given))
	if !ok || err != nil || !hmac.Equal(told, sealOf(mac, r.last, data)) {
		return refusedf("the log of a call was changed: a line does not have its seal")
	}
	first := r.size == 0
	r.size, r.last = r.size+int64(len(text)), told
	var l line
	if err := json.Unmarshal(data, &l); err != nil {
		return refusedf("the log of a call cannot be read")
	}
	if (l.Kind == kindCall) != first {
		return refusedf("the log of a call does not begin with it")
	}
	return r.hear(l, each)
}

// hear follows what a line says.
func (r *Running) hear(l line, each func(messages.Event) error) error {
	switch l.Kind {
	case kindCall:
		if l.Version != Version || l.Exec == nil || l.Exec.ID == "" {
			return refusedf("the log is of version %d, and this program knows %d", l.Version, Version)
		}
		r.Exec, r.Bare, r.News = *l.Exec, l.Bare, l.News
	case kindCell:
		if l.Cell != len(r.Ended) || l.Cell >= len(r.Exec.Cells) || (l.ID == 0) == (l.Ref == "") {
			return refusedf("the log names a cell that the call does not have")
		}
		r.Begun, r.ID, r.Ref = true, l.ID, l.Ref
	case kindOutput, kindEvent:
		return r.event(l, each)
	case kindHalves:
		if l.Halves == nil || max(len(l.Halves[0]), len(l.Halves[1])) >= utf8.UTFMax {
			return refusedf("the log has the start of a character that is none")
		}
		r.Halves, r.taken, r.At = *l.Halves, l.Frame, Place{l.Frame, l.Nth, l.Late}
	case kindAsk, kindAnswered:
		if l.Question == nil {
			return refusedf("the log has a question without words")
		}
		same := func(q Question) bool { return q.Request == l.Question.Request }
		r.Questions = slices.DeleteFunc(r.Questions, same)
		if l.Kind == kindAsk {
			r.Questions, r.At = append(r.Questions, *l.Question), Place{l.Frame, l.Nth, l.Late}
		}
	case kindHost, kindReturned:
		r.Calls = slices.DeleteFunc(r.Calls, func(c uint64) bool { return c == l.ID })
		if l.Kind == kindHost {
			r.Calls, r.At = append(r.Calls, l.ID), Place{l.Frame, l.Nth, l.Late}
		}
	case kindEnd:
		if l.Result == nil || l.Cell != len(r.Ended) || l.Cell >= len(r.Exec.Cells) {
			return refusedf("the log has the result of a cell that the call does not have")
		}
		r.Ended = append(r.Ended, *l.Result)
		r.Ref = ""
		r.Begun, r.ID, r.At, r.Said, r.Over, r.Stderr, r.Failure, r.Questions, r.Calls = false, 0, Place{}, false, false, "", nil, nil, nil
		r.Halves, r.taken = [Streams][]byte{}, 0
	case kindStop:
		r.Stop = l.Cause
	case kindFull:
		r.Full = true
	default:
		return refusedf("the log has a line of a kind that is not known: %.20q", l.Kind)
	}
	return nil
}

// isPrinted reports whether an event says what was written to stdout, by how
// [messages.AppendEvent] begins it.
func isPrinted(event []byte) bool {
	_, typ, _ := bytes.Cut(event, []byte(`,"type":"`))
	return bytes.HasPrefix(typ, []byte(`stdout"`))
}

// event takes one that was handed on.
func (r *Running) event(l line, each func(messages.Event) error) error {
	r.Events++
	r.Said = true
	if l.Kind == kindOutput {
		r.At = Place{l.Frame, l.Nth, l.Late}
	}
	if each == nil && isPrinted(l.Event) {
		return nil // it changes nothing else, and is most of what a log has
	}
	e, err := messages.ParseEvent(l.Event)
	if err != nil {
		return refusedf("the log has an event that cannot be read")
	}
	switch e := e.(type) {
	case messages.Status:
		r.Over = e.Status != "" && e.Status != messages.CellRunning
	case messages.Error:
		r.Failure, r.Halves = &e.ErrorDetails, [Streams][]byte{} // which were handed on before it
	case messages.ExecuteResult:
		r.Halves = [Streams][]byte{}
	case messages.Stream:
		const most = 2 << 10
		if e.Name == messages.StderrStream {
			r.Stderr += e.Text
			r.Stderr = r.Stderr[max(0, len(r.Stderr)-most):]
		}
	}
	if each == nil {
		return nil
	}
	return each(e)
}

// Past reports whether a frame was handed on whole.
func (r *Running) Past(frame uint64) bool {
	return frame > 0 && (frame < r.At.Frame || frame <= r.taken)
}

// Claim is what a log says of its call that nobody can prove any more: it serves to tell
// what was lost, and nothing else.
type Claim struct {
	ID  string
	Key messages.SessionKey
}

// Claims returns what the logs in a folder claim whose seals are lost.
func Claims(dir string) []Claim {
	names, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	var all []Claim
	for _, name := range names {
		f, err := file.Open(name)
		if err != nil {
			continue // there is nothing to tell
		}
		text, err := next(bufio.NewReader(io.LimitReader(f, maxLine)))
		_ = f.Close()
		_, data, ok := bytes.Cut(text, []byte(" "))
		var l line
		if err == nil && ok && json.Unmarshal(data, &l) == nil && l.Kind == kindCall && l.Exec != nil {
			all = append(all, Claim{l.Exec.ID, l.Exec.Key})
		}
	}
	return all
}
