package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// limits are kernel.Limits as this backend keeps them.
type limits kernel.Limits

// request returns the limits as the session gets them, nil when nothing is limited.
func (l limits) request() map[string]int64 {
	const names = 4
	m := make(map[string]int64, names)
	put := func(name messages.Limit, value int64) {
		if value > 0 {
			m[string(name)] = value
		}
	}
	put(messages.LimitMemory, l.Memory)
	put(messages.LimitCPU, int64((l.CPU+time.Second-1)/time.Second))
	put(messages.LimitFiles, int64(l.Files))
	put(messages.LimitProcesses, int64(l.Processes))
	if len(m) == 0 {
		return nil
	}
	return m
}

// What a session's end says about its limits.
const (
	// cpuExit is the exit code of a session that a cell will not give back when
	// its time is over; limits.py says so.
	cpuExit = 128 + 24
	sigXCPU = 24
	// cpuGrace is how much longer native code may go on that hears nothing of
	// its limit, in processor time.
	cpuGrace = 4 * time.Second
)

// exceededBy returns the limit that an end of the process stands for, "" for
// none.
func (l limits) exceededBy(end error) messages.Limit {
	var exit *process.ExitError
	if l.CPU > 0 && errors.As(end, &exit) && (exit.Code == cpuExit || exit.Signal == sigXCPU) {
		return messages.LimitCPU
	}
	return ""
}

// maxTail bounds the end of stderr that is reported with a limit, in bytes.
const maxTail = 2 << 10

// tail keeps the end of a text.
type tail struct{ text string }

func (t *tail) add(text string) {
	if len(text) > maxTail {
		text = text[len(text)-maxTail:]
	}
	t.text += text
	if over := len(t.text) - maxTail; over > 0 {
		t.text = strings.ToValidUTF8(t.text[over:], "")
	}
}

// overdrawn reports whether native code, which cannot be interrupted, has used up its
// processor time.
func (c *cell) overdrawn(ctx context.Context) bool {
	limit := c.i.limits.CPU
	if limit <= 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, answerWait) // a server that is busy is asked again
	defer cancel()
	used, err := c.i.child.CPUTime(ctx)
	return err == nil && used-c.cpu > limit+cpuGrace
}

// exceeded notes which limit the cell has met.
func (c *cell) exceeded(limit messages.Limit) {
	if limit != "" {
		c.reply.Exceeded = &messages.ResourceLimitExceeded{Limit: limit, Stderr: c.stderr.text}
	}
}

// nameExceeded is what the error of a cell is called that has met a limit.
const nameExceeded = "ResourceLimitExceeded"

// processesText says what the limit of processes is; limits.py says it alike.
func (l limits) processesText() string {
	return fmt.Sprintf("processes: the session may have %d processes besides its own", l.Processes)
}

// crowded reports whether a cell that is about to end, or has ended so, had too many processes.
// What was refused to a cell that did not fail for it were threads, or nothing that it needs.
func (c *cell) crowded(ok bool) bool {
	refused := !ok && c.i.refused() > c.refused
	return c.crowd.last(time.Since(c.begin), refused) || refused
}

// raised takes what the cell has raised. Where it had too many processes, that is a mere
// interrupt, or that another one was refused: the limit is told after it.
func (c *cell) raised(ctx context.Context, f ndjson.Frame) {
	e := &messages.ErrorDetails{Name: f.Name, Message: f.Message, Traceback: f.Traceback, ErrorPlace: f.Place}
	if (e.Name != nameExceeded || threadless(e.Traceback)) && c.crowded(false) {
		c.crowdedOut(e)
	}
	c.reply.Error = e
	c.out(ctx, messages.Error{ErrorDetails: *e})
}

// threadless reports whether an error that the session takes for its limit of memory is that a
// thread could not begin. The session does not know what a control group refuses, and a thread
// counts as a process there. limits.py has the words.
func threadless(traceback []string) bool {
	return len(traceback) > 1 && strings.HasSuffix(traceback[len(traceback)-2], "can't start new thread")
}

// crowdedOut has an error say that the limit of processes was met, and no other one.
func (c *cell) crowdedOut(e *messages.ErrorDetails) {
	if e.Name == nameExceeded {
		e.Traceback = e.Traceback[:len(e.Traceback)-1]
	}
	e.Name, e.Message = nameExceeded, c.i.limits.processesText()
	e.Traceback = append(e.Traceback, e.Name+": "+e.Message)
	c.exceeded(messages.LimitProcesses)
}

// ended takes the last frame.
func (c *cell) ended(ctx context.Context, f ndjson.Frame) {
	c.reply.OK, c.reply.Interrupted, c.reply.StdinRequested = f.OK, f.Interrupted, f.StdinRequested
	c.reply.ExecutionCount = f.Count
	if c.reply.Exceeded == nil { // else the error before this frame has told better
		c.exceeded(messages.Limit(f.Limit))
	}
	if f.Limit == string(messages.LimitProcesses) { // the session ends what descends from it alone
		c.crowd.last(0, true)
	}
	if f.OK && f.Limit == "" && c.crowded(true) { // what it has started went on when it had ended
		c.reply.OK, c.reply.Error = false, &messages.ErrorDetails{}
		c.crowdedOut(c.reply.Error)
		c.out(ctx, messages.Error{ErrorDetails: *c.reply.Error})
	}
	c.reply.Duration = time.Duration(f.Seconds * float64(time.Second))
	if f.StdinRequested {
		c.out(ctx, messages.Notice{Code: "stdin", Text: stdinNotice})
	}
}

// belongs is how it is told what belongs to the session.
func (i *Interpreter) belongs() belongs { return belongs{i.info.PID, i.group} }

// setApart makes what the session starts known as its own, where that is limited.
func (i *Interpreter) setApart(new bool) {
	if i.limits.Processes > 0 && i.info.PID > 0 {
		i.belongs().setApart(new)
	}
}

// watchCrowd begins to count the processes of the session for a cell, where they are limited.
func (i *Interpreter) watchCrowd() *crowd {
	if i.limits.Processes <= 0 || i.child.Inside() || !process.Tallies {
		return nil // what is in a sandbox of its own is not seen from here: the session alone counts
	}
	w := &crowd{belongs: i.belongs(), most: i.limits.Processes, gone: func() bool { return i.isLeft() || i.Err() != nil }}
	w.stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), nativeMost)
		defer cancel()
		_ = i.Interrupt(ctx)
	}
	return w.begin()
}
