package estate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"sync"

	"github.com/coppice-run/coppice/messages"
)

// MaxLog is how many bytes a log takes. What is handed on beyond is left out.
const MaxLog = 256 << 20

// Streams is how many streams a session has.
const Streams = 2

// reserve is what a log has beyond its bound for what is no output.
const reserve = 1 << 20

// The kinds of lines.
const (
	kindCall     = "call"     // a call begins
	kindCell     = "cell"     // a cell of it is about to be sent
	kindOutput   = "output"   // an event that came of a frame
	kindEvent    = "event"    // another event
	kindHalves   = "halves"   // a frame was taken that ends within a character, or finishes one
	kindAsk      = "ask"      // code waits for a line
	kindAnswered = "answered" // and has it
	kindHost     = "host"     // code calls a function of the host
	kindReturned = "returned" // and has its answer
	kindEnd      = "end"      // a cell has ended
	kindStop     = "stop"     // an interrupt was asked for
	kindFull     = "full"     // events are left out from here on
)

// line is one thing that a log says. Which members are set depends on Kind.
type line struct {
	Kind     string                  `json:"k"`
	Version  int                     `json:"v,omitempty"`
	Exec     *messages.Execute       `json:"exec,omitempty"`
	Bare     bool                    `json:"bare,omitempty"`
	Cell     int                     `json:"cell,omitempty"`
	ID       uint64                  `json:"id,omitempty"`
	Ref      string                  `json:"ref,omitempty"`
	Event    json.RawMessage         `json:"e,omitempty"`
	Frame    uint64                  `json:"f,omitempty"`
	Nth      int                     `json:"n,omitempty"`
	Late     bool                    `json:"late,omitempty"`
	Halves   *[Streams][]byte        `json:"h,omitempty"`
	Question *Question               `json:"q,omitempty"`
	Result   *messages.CellResult    `json:"r,omitempty"`
	Cause    messages.InterruptCause `json:"cause,omitempty"`
	News     *News                   `json:"news,omitempty"`
}

// Place is where in the session's frames an event comes from.
type Place struct {
	// Frame is the number of the frame in its cell, Nth which of its events it is, from 1.
	Frame uint64
	Nth   int
	// Late says that it is of an earlier cell's code.
	Late bool
}

// Question is one that code waits for an answer to.
type Question struct {
	Request  string `json:"request"`
	Prompt   string `json:"prompt,omitempty"`
	Password bool   `json:"password,omitempty"`
}

// NewSeal returns a key for the seal of a log.
func NewSeal() []byte { return []byte(rand.Text()) }

// Log is the log of one session. Make it with [Create]. A nil one takes nothing.
type Log struct {
	mu     sync.Mutex
	file   *os.File  // guarded by mu; nil: it was given up
	mac    hash.Hash // guarded by mu
	last   []byte    // the seal of the last line; guarded by mu
	size   int64     // guarded by mu
	full   bool      // guarded by mu
	frozen bool      // guarded by mu
	most   int64     // of bytes; not changed
	open   bool      // a call is in it; guarded by mu
}

// Create makes a log in a folder, in place of one that is there.
func Create(dir, name string, seal []byte) (*Log, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the log of a session: %w", err)
	}
	return &Log{file: f, mac: hmac.New(sha256.New, seal), most: MaxLog}, nil
}

// Reopen goes on with the log of an earlier host, behind what [Read] has read of it.
func Reopen(dir, name string, seal []byte, r *Running) (*Log, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("go on with the log of a session: %w", err)
	}
	if err := f.Truncate(r.size); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("go on with the log of a session: %w", err)
	}
	return &Log{file: f, mac: hmac.New(sha256.New, seal), last: r.last, size: r.size, full: r.Full, open: true, most: MaxLog}, nil
}

// ErrFrozen is the error of a log that was left to the next host.
var ErrFrozen = errors.New("the log is the next host's")

// Begin begins a call, in place of the one before. Variables that are to be set are left
// out: their values may be secrets. news is what its result tells of how the session began; nil:
// that is told. The error is [ErrFrozen] after Freeze.
func (l *Log) Begin(exec messages.Execute, news *News) error {
	bare := len(exec.Env)+len(exec.CallEnv) > 0
	exec.Env, exec.CallEnv = nil, nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen {
		return ErrFrozen
	}
	if l.file == nil {
		return os.ErrClosed
	}
	l.open = false
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("begin the log of a call: %w", err)
	}
	l.last, l.size, l.full = nil, 0, false
	if err := l.write(line{Kind: kindCall, Version: Version, Exec: &exec, Bare: bare, News: news}); err != nil {
		return err
	}
	l.open = true
	return nil
}

// Cell says that a cell of the call is sent to the session, under a number of its own. The
// error is [ErrFrozen] after Freeze: then it must not be sent, since the next host begins
// it.
func (l *Log) Cell(cell int, id uint64) error {
	if !l.add(line{Kind: kindCell, Cell: cell, ID: id}) {
		return ErrFrozen
	}
	return nil
}

// Sent is Cell where what the session knows it by is no number.
func (l *Log) Sent(cell int, ref string) error {
	if !l.add(line{Kind: kindCell, Cell: cell, Ref: ref}) {
		return ErrFrozen
	}
	return nil
}

// Output says that an event is handed on that comes of a frame of the session.
func (l *Log) Output(e messages.Event, at Place) {
	l.event(line{Kind: kindOutput, Frame: at.Frame, Nth: at.Nth, Late: at.Late}, e)
}

// Emitted says that another event is handed on.
func (l *Log) Emitted(e messages.Event) { l.event(line{Kind: kindEvent}, e) }

// Halves says which starts of characters the frames up to one have left, by stream: it was
// taken whole, and may have brought no event.
func (l *Log) Halves(of [Streams][]byte, at Place) {
	l.add(line{Kind: kindHalves, Halves: &of, Frame: at.Frame, Nth: at.Nth, Late: at.Late})
}

// Asked says that code waits for a line, by a frame of the session.
func (l *Log) Asked(q Question, at Place) {
	l.add(line{Kind: kindAsk, Question: &q, Frame: at.Frame, Nth: at.Nth, Late: at.Late})
}

// Answered says that it has one, or that it will get none.
func (l *Log) Answered(request string) {
	l.add(line{Kind: kindAnswered, Question: &Question{Request: request}})
}

// Called says that code calls a function of the host, under a number, by a frame of the
// session, and Returned that it has the answer.
func (l *Log) Called(call uint64, at Place) {
	l.add(line{Kind: kindHost, ID: call, Frame: at.Frame, Nth: at.Nth, Late: at.Late})
}

// Returned says that a call of a function is over.
func (l *Log) Returned(call uint64) { l.add(line{Kind: kindReturned, ID: call}) }

// Ended says how a cell of the call has ended.
func (l *Log) Ended(cell int, r messages.CellResult) {
	l.add(line{Kind: kindEnd, Cell: cell, Result: &r})
}

// Stopped says that the call is to end.
func (l *Log) Stopped(cause messages.InterruptCause) { l.add(line{Kind: kindStop, Cause: cause}) }

// Freeze leaves the log to the next host as it is: what comes is not written.
func (l *Log) Freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = true
}

// Close closes the file, which stays.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

func (l *Log) event(what line, e messages.Event) {
	if l == nil {
		return
	}
	data, err := messages.AppendEvent(nil, e)
	if err != nil {
		return // no sink takes it either
	}
	what.Event = data
	l.add(what)
}

// add writes a line of the call. A log that cannot be written is given up: the call goes
// on, and does not outlive its host. It reports false for a log that is frozen.
func (l *Log) add(what line) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen {
		return false
	}
	if l.file == nil || !l.open {
		return true
	}
	if over := l.size+int64(len(what.Event)) > l.most; over && what.Event != nil {
		if l.full {
			return true
		}
		l.full = true
		what = line{Kind: kindFull}
	}
	if l.size > l.most+reserve || l.write(what) != nil {
		l.open = false
		_ = l.file.Truncate(0)
	}
	return true
}

// write writes a line with its seal. l.mu is held.
func (l *Log) write(what line) error {
	data, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("write the log of a call: %w", err)
	}
	seal := sealOf(l.mac, l.last, data)
	whole := make([]byte, 0, 2*sealLength+1+len(data)+1)
	whole = append(hex.AppendEncode(whole, seal), ' ')
	whole = append(append(whole, data...), '\n')
	n, err := l.file.WriteAt(whole, l.size)
	if err == nil && n < len(whole) {
		err = errors.New("it was written in part")
	}
	if err != nil {
		return fmt.Errorf("write the log of a call: %w", err)
	}
	l.last, l.size = seal, l.size+int64(n)
	return nil
}

// sealLength is how long the seal of a line is, in bytes.
const sealLength = 16

// sealOf is the seal of a line that follows one with another seal.
func sealOf(mac hash.Hash, last, data []byte) []byte {
	mac.Reset()
	_, _ = mac.Write(append(append(make([]byte, 0, len(last)+1), last...), ' ')) // a hash takes everything
	_, _ = mac.Write(data)
	return mac.Sum(nil)[:sealLength]
}
