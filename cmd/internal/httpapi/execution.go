package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/eventlog"
	"github.com/coppice-run/coppice/messages"
)

// execution is one, running or ended.
type execution struct {
	log    *eventlog.Log
	cancel context.CancelFunc
	ended  chan struct{} // closed at the end
	asked  string        // what was asked for, as JSON: for who asks with the same id
	code   string        // of the cells of a call
	most   int64         // how many bytes the log holds before output is left out
	full   bool          // output was left out; the execution's goroutine's own

	told    atomic.Bool   // its end was shown to somebody
	follows atomic.Bool   // it goes on with one of an earlier server
	settled chan struct{} // closed when it has its place in the queue, or was refused
	refused error         // why; set before settled is closed

	// returned is closed when it was refused, or has come to something that the next server has
	// to say: came is what this one knows of it then, and wanted that nobody has cancelled it;
	// set before that.
	returned chan struct{}
	came     *messages.Result
	wanted   bool

	mu   sync.Mutex
	info client.Execution // guarded by mu
	// turn is set of an execution that needs leave, and shown is up to which number its
	// events had it; both guarded by mu. log is replaced with mu held, too, by the
	// execution's goroutine; others read it by events.
	turn  Turn
	shown uint64
}

// events is the log of the execution, for those who follow it.
func (x *execution) events() *eventlog.Log {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log
}

// describe returns what is known, with the result if that is wanted.
func (x *execution) describe(result bool) client.Execution {
	x.mu.Lock()
	defer x.mu.Unlock()
	info := x.info
	info.Events, _, _ = x.log.Size()
	if result {
		info.Code = x.code
	} else {
		info.Result, info.Notebook = nil, nil
	}
	return info
}

// show describes the execution, with its result, to somebody.
func (x *execution) show() client.Execution {
	info := x.describe(true)
	if info.State == client.Ended {
		x.told.Store(true)
	}
	return info
}

// logFull is what the log says in place of output that it has no room for.
const logFull = "the log of this execution is full: what it prints from here on is not in it"

// event takes an event of the call, from the execution's goroutine.
func (x *execution) event(e messages.Event, logger *slog.Logger) {
	if _, size, _ := x.log.Size(); size+int64(e.Size()) > x.most {
		switch e.(type) {
		case messages.Stream, messages.Display, messages.ExecuteResult, messages.HostEvent:
			if x.full {
				return
			}
			x.full = true
			e = messages.Notice{Position: e.Pos(), Code: "log-full", Text: logFull}
		}
	}
	if err := x.append(e, x.log.Append); err != nil {
		logger.Error("an event was not kept", "execution", x.info.ID, "err", err)
	}
}

// append gives the event the number that it has in the log.
func (x *execution) append(e messages.Event, to func(func(uint64) ([]byte, error)) error) error {
	return to(func(n uint64) ([]byte, error) {
		return messages.AppendEvent(nil, e.At(messages.Position{Seq: n, Cell: e.Pos().Cell}))
	})
}

// finish writes the end. Who has read it finds the execution ended.
func (x *execution) finish(result messages.Result, report messages.RawJSON, logger *slog.Logger) {
	if x.full {
		result.Reason = strings.TrimPrefix(result.Reason+"; "+logFull, "; ")
	}
	x.mu.Lock()
	if err := x.append(messages.Final{Position: messages.Position{Cell: -1}, Result: result}, x.log.Finish); err != nil {
		logger.Error("the end of an execution was not kept", "execution", x.info.ID, "err", err)
	}
	x.info.State, x.info.Ended, x.info.Outcome = client.Ended, time.Now(), result.Outcome
	x.info.Result, x.info.Notebook = &result, report
	x.mu.Unlock()
	close(x.ended)
}

func (x *execution) close(logger *slog.Logger) {
	if err := x.log.Close(); err != nil {
		logger.Warn("the log of an execution was not removed", "err", err)
	}
}

// titleOf is what lists show of an execution.
func titleOf(cells []messages.Cell) string {
	const most = 80
	for _, c := range cells {
		text := strings.TrimSpace(c.Title)
		if text == "" {
			text, _, _ = strings.Cut(strings.TrimSpace(c.Code), "\n")
		}
		if text == "" {
			continue
		}
		if r := []rune(text); len(r) > most {
			text = string(r[:most-1]) + "…"
		}
		return text
	}
	return "(no code)"
}

// errTaken is what a reader hears whose events were taken back.
var errTaken = errors.New("what the execution has shown was not allowed to leave")

// release waits until the events up to a number may leave.
func (x *execution) release(ctx context.Context, log *eventlog.Log, n uint64) error {
	x.mu.Lock()
	turn, may := x.turn, x.turn == nil || n <= x.shown
	x.mu.Unlock()
	if may {
		return nil
	}
	if err := turn.Show(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.log != log {
		return errTaken
	}
	x.shown = max(x.shown, n)
	return nil
}

// lose is the result of an execution whose own may not leave. What it has shown and nobody
// has seen is taken back: a newer owner of the session may have answered meanwhile. It is
// called by the execution's goroutine; kept is an empty log for the rest.
func (x *execution) lose(kept *eventlog.Log, result messages.Result, why error, logger *slog.Logger) messages.Result {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n, _, _ := x.log.Size(); n > x.shown {
		if err := first(x.log, x.shown, kept); err != nil {
			logger.Error("the events of a lost execution were not kept", "execution", x.info.ID, "err", err)
		}
		x.close(logger) // who follows it comes back, and finds the other
		x.log = kept
	}
	x.shown = math.MaxUint64
	reason := fmt.Sprintf("the node of the session was cut off from its fleet for too long: %v", why)
	return messages.Result{
		Outcome: messages.OutcomeLost, State: messages.StateLost, Reason: reason,
		Text:    "The result is lost, and so are all variables: " + reason + ". The code has been begun, and may have had effects.",
		Backend: result.Backend, Session: x.info.Session, Cwd: x.info.Cwd, Exec: result.Exec, Progress: result.Progress,
		Cells: []messages.CellResult{}, JSON: []messages.RawJSON{}, Images: []messages.Image{},
	}
}

// copied is how many bytes of events are copied at once.
const copied = 64 << 10

// first copies the first events of a log to another.
func first(from *eventlog.Log, most uint64, to *eventlog.Log) error {
	for n := uint64(0); n < most; {
		entries, _, err := from.Read(n, copied)
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, e := range entries {
			if n++; n > most {
				break
			}
			if err := to.Append(func(uint64) ([]byte, error) { return e, nil }); err != nil {
				return err
			}
		}
	}
	return nil
}
