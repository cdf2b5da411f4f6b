package httpapi

import (
	"context"
	"log/slog"
	"strings"
	"sync"
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
	most   int64         // how many bytes the log holds before output is left out
	full   bool          // output was left out; the execution's goroutine's own

	settled chan struct{} // closed when it has its place in the queue, or was refused
	refused error         // why; set before settled is closed

	mu   sync.Mutex
	info client.Execution // guarded by mu
}

// describe returns what is known, with the result if that is wanted.
func (x *execution) describe(result bool) client.Execution {
	x.mu.Lock()
	defer x.mu.Unlock()
	info := x.info
	info.Events, _, _ = x.log.Size()
	if !result {
		info.Result, info.Notebook = nil, nil
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

// finish writes the end.
func (x *execution) finish(result messages.Result, report messages.RawJSON, logger *slog.Logger) {
	if x.full {
		result.Reason = strings.TrimPrefix(result.Reason+"; "+logFull, "; ")
	}
	if err := x.append(messages.Final{Position: messages.Position{Cell: -1}, Result: result}, x.log.Finish); err != nil {
		logger.Error("the end of an execution was not kept", "execution", x.info.ID, "err", err)
	}
	x.mu.Lock()
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
