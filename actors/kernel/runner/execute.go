package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/forkserver"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// What results say where output has a story.
const stdinNotice = "[stdin] The code asked for input. Interactive stdin is not available in this call; provide the input in the code."

// Execute runs one cell.
func (i *Interpreter) Execute(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	if n := i.notice; n != nil {
		i.notice = nil
		if err := emit(ctx, *n); err != nil {
			return kernel.CellReply{}, err
		}
	}
	i.mu.Lock()
	i.cells++
	c := cell{i: i, id: i.cells, emit: emit, serve: r.Call, comms: r.Comms}
	i.mu.Unlock()
	if r.Resume && i.kept() != nil && i.kept().last != nil {
		c.from = i.kept().last
		c.id = c.from.ID
		c.resume()
	}
	request := ndjson.Request{Type: ndjson.TypeExecute, ID: c.id, Code: &r.Code, Env: ndjson.EnvPatch(r.Env), CallEnv: r.CallEnv, SameCall: r.Index > 0, AllowStdin: r.AllowStdin}
	if r.ResetNames {
		request = ndjson.Request{Type: ndjson.TypeReset, ID: c.id}
	}
	var err error
	i.request, err = ndjson.AppendRequest(i.request[:0], request)
	if err != nil {
		return kernel.TooLong(ctx, err, emit)
	}
	c.begin, c.refused = time.Now(), i.refused()
	if i.limits.CPU > 0 {
		c.cpu, _ = i.child.CPUTime(ctx) // without it, all that the process has used counts
	}
	if r.Index >= 0 && c.from == nil && i.logged().Cell(r.Index, c.id) != nil {
		select { // the next host begins it
		case <-ctx.Done():
			return kernel.CellReply{}, context.Cause(ctx)
		case <-i.done:
			return kernel.CellReply{}, i.err
		}
	}
	i.setRunning(c.id)
	c.crowd = i.watchCrowd()
	reply, err := c.run(ctx)
	c.crowd.end()
	if err == nil || ctx.Err() == nil {
		i.setRunning(0) // else it was given up and runs on: Close will not ask it to end, but end it
	}
	i.lines.Release()
	const most = 64 << 10 // a long request is no reason to hold its buffer
	if cap(i.request) > most {
		i.request = nil
	}
	return reply, err
}

func (i *Interpreter) setRunning(id uint64) {
	i.mu.Lock()
	i.running = id
	i.mu.Unlock()
}

// refused is the reply to a cell that did not run.
func refused(name, why string) kernel.CellReply {
	return kernel.CellReply{Error: &messages.ErrorDetails{Name: name, Message: why, Traceback: []string{name + ": " + why}}}
}

// cell is one execution. It belongs to the goroutine of Execute.
type cell struct {
	i     *Interpreter
	id    uint64
	emit  func(context.Context, messages.Event) error
	begin time.Time
	serve func(context.Context, messages.HostCall) messages.HostResult // nil: calls are refused
	calls hostCalls
	comms bool // what objects say to a frontend is asked for

	refused int64         // the processes that the group had refused when the cell began
	crowd   *crowd        // sees that it does not start too many
	cpu     time.Duration // what the process had used when the cell began, when that is limited
	stderr  tail
	raw     [2]ndjson.Text  // what was written to the streams as bytes
	halved  bool            // it is noted that a character of them is not whole
	seq     uint64          // of the last output frame
	nth     int             // of the events that came of it
	from    *estate.Running // how far an earlier host came with it; nil: this one has begun it
	begun   bool            // the session has shown that it runs the cell
	late    bool            // what comes was printed between the cells
	reply   kernel.CellReply
	dropped error // the first refusal of emit
}

// run sends the request and takes frames until the cell is done.
func (c *cell) run(ctx context.Context) (_ kernel.CellReply, err error) {
	stop := c.i.until(ctx)
	defer func() { stop(err) }()
	if err := c.send(); err != nil {
		return c.fail(ctx, err)
	}
	if c.from != nil {
		c.askAgain(ctx)
	}
	if err := c.i.child.Main.SetReadDeadline(time.Now().Add(look)); err != nil {
		return c.fail(ctx, err)
	}
	for {
		line, err := c.i.next(ctx, func() { c.stuck(ctx) })
		var long *ndjson.TooLongError
		switch {
		case err == nil:
			if done, err := c.frame(ctx, line); done {
				return c.finish(), err
			}
		case errors.As(err, &long):
			c.incomplete("a frame was left out: " + err.Error())
		default:
			return c.fail(ctx, err)
		}
		if ctx.Err() != nil {
			return c.reply, context.Cause(ctx)
		}
	}
}

// send has the session run the cell. One of an earlier host may run already: first the
// session is asked, and what it says then shows whether it does.
func (c *cell) send() error {
	if c.from != nil && !c.begun {
		return c.i.probe()
	}
	if c.from != nil {
		return nil
	}
	return c.i.write(c.i.request)
}

// answerWait is how long the side thread of a silent session has to say that it
// runs, and answerMost how long that is when it has no processor to say it with.
const (
	answerWait = 150 * time.Millisecond
	answerMost = nativeMost
)

// stuck passes on what native code printed while it holds the interpreter's
// lock, when nothing else forwards it and the pipe would fill up. While the side
// thread runs, that one does so: two readers of one pipe would change the order.
func (c *cell) stuck(ctx context.Context) {
	if c.reply.Exceeded == nil && c.overdrawn(ctx) {
		c.exceeded(messages.LimitCPU)
		c.i.cutOff()
	}
	if c.answers(ctx) {
		return
	}
	// What it has said meanwhile comes before what is in the pipe now: it is read first.
	if !c.i.child.Unread() && ctx.Err() == nil && !c.i.lines.Parted() {
		c.printed(ctx, c.i.child.Drain(ctx))
	}
}

// answers reports whether the side thread runs. By the clock alone it is not known that
// it does not: its answer may be there, and this process may have had no time to read it.
func (c *cell) answers(ctx context.Context) bool {
	ping := ndjson.Request{Type: ndjson.TypePing}
	short, cancel := context.WithTimeout(ctx, answerWait)
	err := c.i.ask(short, ping)
	cancel()
	if err == nil || ctx.Err() != nil || c.i.Err() != nil || c.i.child.Unread() {
		return err == nil
	}
	fair, done := opportunity.Within(ctx, opportunity.Budget{Opportunity: answerWait, Ceiling: answerMost}, c.i.Subject())
	defer done()
	return c.i.ask(fair, ping) == nil
}

// text passes on text of a stream, if there is any, and written what came of it as bytes.
func (c *cell) text(ctx context.Context, name messages.StreamName, s string) {
	if s == "" {
		return
	}
	if name == messages.StderrStream {
		c.stderr.add(s)
	}
	c.out(ctx, messages.Stream{Name: name, Text: s})
}

func (c *cell) written(ctx context.Context, name messages.StreamName, b []byte) {
	at := max(0, slices.Index(streams[:], name)) // a frame of another kind is not the session's own
	for _, s := range c.raw[at].Add(b) {
		c.text(ctx, name, s)
	}
	c.halves()
}

// unfinished passes on what stands for characters that were not finished.
func (c *cell) unfinished(ctx context.Context) {
	for at, name := range streams {
		c.text(ctx, name, c.raw[at].End())
	}
}

// printed passes on what the session did not forward itself.
func (c *cell) printed(ctx context.Context, o forkserver.Output) {
	c.text(ctx, messages.StdoutStream, o.Stdout)
	c.text(ctx, messages.StderrStream, o.Stderr)
}

// fail ends a cell whose session is gone.
func (c *cell) fail(ctx context.Context, err error) (kernel.CellReply, error) {
	if ctx.Err() != nil {
		return c.reply, context.Cause(ctx)
	}
	err = c.i.gone(err)
	if f, e := c.i.parse(c.i.lines.Waiting()); e == nil && f.ID == c.id { // the rest of it is in the pipe
		c.written(ctx, messages.StreamName(f.Type), f.Bytes)
	}
	c.unfinished(ctx)
	c.printed(ctx, c.i.child.LastWords())
	if c.reply.Exceeded == nil {
		c.exceeded(c.i.limits.exceededBy(c.i.child.Err()))
	}
	if c.i.endedForMemory() {
		c.exceeded(messages.LimitMemory)
		err = &kernel.LostError{Reason: c.reply.Exceeded.Error() + ": " + c.i.limits.outOfMemoryText(), PID: c.i.info.PID, Exceeded: c.reply.Exceeded, Err: err}
	} else if x := c.reply.Exceeded; x != nil {
		err = &kernel.LostError{Reason: x.Error() + " (the cell did not end when it was told to)", PID: c.i.info.PID, Exceeded: x, Err: err}
	}
	return c.finish(), err
}

func (c *cell) finish() kernel.CellReply {
	if c.reply.Duration == 0 {
		c.reply.Duration = time.Since(c.begin)
	}
	c.reply.Stderr = c.stderr.text
	if c.dropped != nil {
		c.incomplete(fmt.Sprintf("output was not taken: %v", c.dropped))
	}
	return c.reply
}

func (c *cell) incomplete(why string) {
	if c.reply.Incomplete == "" {
		c.reply.Incomplete = why
	}
}

// out hands over one event. An emit that failed is not called again: the output is
// not wanted any more, and the cell runs on.
func (c *cell) out(ctx context.Context, e messages.Event) {
	if c.dropped != nil || !c.fresh() {
		return
	}
	c.dropped = c.emit(ctx, e)
}

// frame handles one frame and reports whether it was the last.
func (c *cell) frame(ctx context.Context, line []byte) (bool, error) {
	f, err := c.i.parse(line)
	if err != nil {
		c.incomplete(err.Error())
		return false, nil
	}
	switch c.i.signOf(f) {
	case stray:
		return false, nil
	case given:
		if c.from == nil || c.begun {
			return false, nil
		}
		c.from = nil // the session was never told to run it
		if err := c.send(); err != nil {
			c.reply, err = c.fail(ctx, err)
			return true, err
		}
		return false, nil
	case none:
	}
	if f.Type == ndjson.TypeProtocolError && (f.ID == c.id || f.ID == 0) {
		c.reply.Error = refused("ProtocolError", f.Message).Error
		return true, nil
	}
	if f.ID != c.id {
		return false, nil // of a cell that was given up
	}
	c.begun = true
	if c.from != nil && c.from.Past(f.Seq) {
		return false, nil // an earlier host has handed it on
	}
	c.inOrder(f)
	c.markLate(ctx, f)
	switch f.Type {
	case ndjson.TypeStdout, ndjson.TypeStderr:
		if f.Raw > 0 {
			c.written(ctx, messages.StreamName(f.Type), f.Bytes)
		} else {
			c.text(ctx, messages.StreamName(f.Type), f.Text)
		}
	case ndjson.TypeDisplay:
		c.out(ctx, messages.Display{Data: f.Data, Metadata: f.Metadata, DisplayID: f.DisplayID, Update: f.Update})
	case ndjson.TypeResult:
		c.unfinished(ctx)
		c.out(ctx, messages.ExecuteResult{Data: f.Data, Metadata: f.Metadata, ExecutionCount: f.Count})
	case ndjson.TypeClear:
		c.out(ctx, messages.ClearOutput{Wait: f.Wait})
	case ndjson.TypeComm:
		if c.comms {
			c.out(ctx, messages.Comm{ID: f.Comm, Action: messages.CommAction(f.Action), Target: f.Target, Data: f.Content, Metadata: f.Metadata, Buffers: f.Buffers})
		}
	case ndjson.TypeInputRequest:
		c.question(ctx, f)
	case ndjson.TypeHostCall:
		c.hostCall(ctx, f)
	case ndjson.TypeHostCancel:
		c.hostCancel(f.Call)
	case ndjson.TypeError:
		c.unfinished(ctx)
		c.raised(ctx, f)
	case ndjson.TypeDone:
		c.unfinished(ctx)
		c.ended(ctx, f)
		return true, nil
	}
	return false, nil
}

// inOrder notes frames that did not come.
func (c *cell) inOrder(f ndjson.Frame) {
	if f.Seq == 0 {
		return
	}
	c.nth = 0
	if c.from != nil && c.seq == 0 { // of what came before, an earlier host has handed on all
		c.seq = max(c.from.At.Frame, 1) - 1
		if f.Seq == c.from.At.Frame+1 {
			c.seq = c.from.At.Frame
		}
	}
	c.seq++
	if f.Seq != c.seq {
		c.incomplete(fmt.Sprintf("frame %d came where frame %d was due", f.Seq, c.seq))
		c.seq = f.Seq
	}
}

// markLate puts marks around what code of earlier cells has printed.
func (c *cell) markLate(ctx context.Context, f ndjson.Frame) {
	late := f.Late || f.Type == ndjson.TypeDropped
	if late == c.late {
		return
	}
	if c.late = late; late {
		c.out(ctx, messages.LateBegins(f.Chars))
	} else {
		c.out(ctx, messages.LateEnds())
	}
}
