package toolproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// Call is one run.
type Call struct {
	// Run is its id.
	Run string
	// Inputs is a JSON object; defaults are filled in.
	Inputs messages.RawJSON
	// Dir is the folder for its files, from [Process.RunDir]; "": none.
	Dir string
	// Emit gets the events of a stream; nil: they are dropped. An error ends the call.
	Emit func(messages.ToolEvent) error
}

// Answer is what came of a call.
type Answer struct {
	// Outputs is a JSON object; it may be there with an Error too.
	Outputs  messages.RawJSON
	Error    *messages.ToolError
	Warnings []string
	// Files are the names of what the run left in its folder.
	Files []string
	// Ended says that the process has ended, and the call with it.
	Ended bool
}

// call is a Call on its way.
type call struct {
	Call
	dir    string
	before int64 // what was on standard error when it began
}

// Do makes one run and returns what came of it: with a POST to /run, and for a
// tool that streams a GET of /stream. It has no limit of its own; ctx ends it,
// which the tool sees as a client that has gone.
func (p *Process) Do(ctx context.Context, c Call) Answer {
	in := &call{Call: c, dir: c.Dir, before: p.stderr.Written()}
	var a Answer
	body, err := p.runBody(in)
	if told, ok := errors.AsType[*messages.ToolError](err); ok {
		a.Error = told
		return a
	}
	if err != nil {
		a.Error = &messages.ToolError{Kind: messages.ToolErrorInput, Message: err.Error()}
		return a
	}
	if err := makeRunDir(in.dir); errors.Is(err, fs.ErrExist) {
		a.Error = &messages.ToolError{
			Kind: messages.ToolErrorInput, Message: "a run with the id " + c.Run + " has left files today",
			Hint: "give each run an id of its own, or none: then it gets one",
		}
		return a
	} else if err != nil {
		a.Error = &messages.ToolError{Kind: messages.ToolErrorTool, Message: err.Error()}
		return a
	}
	unmark := func() {}
	if in.dir != "" {
		unmark = mark(in.dir)
	}
	if p.o.Tool.Streams() {
		a = p.stream(ctx, in, body)
	} else {
		a = p.run(ctx, in, body)
	}
	a.Files = collect(in.dir)
	unmark()
	if len(a.Files) > 0 {
		retain(in.dir, p.o.Tool.RetainRuns)
	}
	return a
}

// runBody is what /run gets.
func (p *Process) runBody(c *call) (*payload, error) {
	var given map[string]json.RawMessage
	if len(c.Inputs) > 0 {
		if err := json.Unmarshal(c.Inputs, &given); err != nil {
			return nil, errors.New("the inputs are not a JSON object")
		}
	}
	context := map[string]any{"run_id": c.Run}
	if c.dir != "" {
		context["artefacts_dir"] = c.dir
	}
	inputs := p.o.Tool.FillInputs(given)
	if p.o.Tool.InputTransport == transportMultipart {
		about, err := json.Marshal(context)
		if err != nil {
			return nil, fmt.Errorf("write the inputs: %w", err)
		}
		return p.form(c, inputs, about)
	}
	data, err := json.Marshal(map[string]any{"run_id": c.Run, "inputs": inputs, "_pixie": context})
	if err != nil {
		return nil, fmt.Errorf("write the inputs: %w", err)
	}
	return &payload{data: data, kind: "application/json"}, nil
}

// run is a run with one answer.
func (p *Process) run(ctx context.Context, c *call, body *payload) Answer {
	resp, err := p.request(ctx, http.MethodPost, "/run", body, c)
	if err != nil {
		return p.broken(ctx, c, err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := p.readBody(resp)
	if err != nil {
		if errors.Is(err, errTooLarge) {
			return Answer{Error: &messages.ToolError{Kind: messages.ToolErrorOutput, Message: err.Error(), Hint: "write large results to the run's folder for files"}}
		}
		return p.broken(ctx, c, err)
	}
	if resp.StatusCode != http.StatusOK {
		return Answer{Error: p.explain(c, resp.StatusCode, data)}
	}
	return p.judge(c, data)
}

var errTooLarge = errors.New("the answer is too large")

// readBody reads an answer into one piece of memory, of its size when the tool says
// what that is.
func (p *Process) readBody(resp *http.Response) ([]byte, error) {
	if resp.ContentLength > p.o.MaxBody {
		return nil, fmt.Errorf("%w: %d bytes, and %d are read at most", errTooLarge, resp.ContentLength, p.o.MaxBody)
	}
	if resp.ContentLength >= 0 {
		data := make([]byte, resp.ContentLength)
		if _, err := io.ReadFull(resp.Body, data); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		return data, nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, p.o.MaxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if int64(len(data)) > p.o.MaxBody {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, p.o.MaxBody)
	}
	return data, nil
}

// judge compares an answer with what the tool declares.
func (p *Process) judge(c *call, data []byte) Answer {
	whole, outputs, err := toolspec.Object(data)
	if err != nil || outputs == nil {
		return Answer{Error: &messages.ToolError{
			Kind: messages.ToolErrorOutput, Status: http.StatusOK, Stderr: p.since(c),
			Message: "the tool returned " + brief(data) + ", which is not an object of its outputs",
		}}
	}
	if inner, wrapped := outputs["outputs"]; wrapped && p.o.Tool.Output("outputs") == nil {
		if _, unwrapped, err := toolspec.Object(inner); err == nil && unwrapped != nil {
			outputs, whole = unwrapped, inner
		}
	}
	return p.finish(c, outputs, whole)
}

// finish makes the answer of a run that returned outputs, which are the members of data.
func (p *Process) finish(c *call, outputs map[string]json.RawMessage, data []byte) Answer {
	a := Answer{Outputs: data}
	wrong, warnings := p.o.Tool.Conform(outputs)
	a.Warnings = toolspec.Lines(warnings, maxDiffs)
	if len(wrong) > 0 {
		a.Error = &messages.ToolError{
			Kind: messages.ToolErrorOutput, Status: http.StatusOK, Stderr: p.since(c),
			Message: "the outputs are not those that tool.json declares: " + strings.Join(toolspec.Lines(wrong, 3), "; "),
			Hint:    "return every output of tool.json, each in the form of its type",
		}
	}
	return a
}

// endWait is how long the end of a process is waited for when a connection to
// it broke: the two come at the same time.
const endWait = time.Second

// broken explains a call whose connection failed.
func (p *Process) broken(ctx context.Context, c *call, err error) Answer {
	if ctx.Err() != nil {
		return Answer{Error: &messages.ToolError{Kind: messages.ToolErrorCancelled, Message: "the run was given up", Stderr: p.since(c)}}
	}
	timer := time.NewTimer(endWait)
	defer timer.Stop()
	select {
	case <-p.proc.Done():
		return Answer{Error: p.Ended(c.before), Ended: true}
	case <-timer.C:
	}
	return Answer{Error: p.brokenError(c, err)}
}

// brokenError says what is known of a connection that a tool broke which lives on.
func (p *Process) brokenError(c *call, err error) *messages.ToolError {
	p.settleStderr(c)
	e := &messages.ToolError{
		Kind: messages.ToolErrorTool, Message: "the tool broke the connection: " + err.Error(), Stderr: p.since(c),
		Hint: "view stderr",
	}
	if strings.TrimSpace(e.Stderr) == "" {
		e.Hint = "the tool wrote nothing to standard error: let it answer each run, also one that fails"
	}
	switch why, _ := traced(p.said(c.before)); {
	case why.memory():
		return p.memoryError(e)
	case why.thread():
		return p.threadError(e)
	default:
		return e
	}
}

// Mark is how much was written to standard error until now, for [Process.Ended].
func (p *Process) Mark() int64 { return p.stderr.Written() }

// Ended is the error of a run during which the process ended; mark is that of
// its beginning.
func (p *Process) Ended(mark int64) *messages.ToolError {
	e := &messages.ToolError{
		Kind: messages.ToolErrorCrashed, Message: "the tool " + p.Exit() + " during the run", Stderr: p.after(mark),
		Hint: "see its standard error; the next run starts it again",
	}
	if p.endedForMemory(p.said(mark)) {
		return p.memoryError(e)
	}
	return e
}

// How long standard error is waited for when a run has failed: what a tool
// wrote before its answer may be read after it.
const (
	stderrQuiet = 30 * time.Millisecond
	stderrMost  = 300 * time.Millisecond
)

// settleStderr returns when something has come since a call began, and then
// nothing for a moment.
func (p *Process) settleStderr(c *call) {
	tick := time.NewTicker(stderrQuiet)
	defer tick.Stop()
	for end := time.Now().Add(stderrMost); time.Now().Before(end); {
		before := p.stderr.Written()
		<-tick.C
		if p.stderr.Written() == before && before > c.before {
			return
		}
	}
}

// since is what was written to standard error since a call began.
func (p *Process) since(c *call) string { return p.after(c.before) }

// after is the end of said, as a result has it.
func (p *Process) after(mark int64) string { return bounded(p.said(mark)) }

// maxStderr bounds what of standard error a result has, in bytes. The logs have more.
const maxStderr = 8 << 10

// bounded is the end of a text that is too long for a result, from the beginning of a
// line on if one begins there.
func bounded(text string) string {
	if len(text) <= maxStderr {
		return text
	}
	end := text[len(text)-maxStderr:]
	if _, rest, ok := strings.Cut(end, "\n"); ok && rest != "" {
		end = rest
	}
	return fmt.Sprintf("[%d bytes before this are in the tool's log]\n", len(text)-len(end)) + strings.ToValidUTF8(end, "")
}

// said is what is kept of standard error since a mark.
func (p *Process) said(mark int64) string {
	text, written := p.stderr.String(), p.stderr.Written()-mark
	if written <= 0 {
		return ""
	}
	if int64(len(text)) > written {
		text = text[int64(len(text))-written:]
	}
	return p.env.Mask(strings.ToValidUTF8(text, "\ufffd"))
}

// Cancel asks the tool to end a run, and asks again while the tool says that it
// cancelled nothing: the run may be on its way to it. ctx ends with the run, or
// with the patience for it. A tool that knows nothing of the run is not an error of
// the tool; the caller sees whether the run ends.
func (p *Process) Cancel(ctx context.Context, run string) error {
	for wait := cancelAgain; ; wait = min(2*wait, cancelSeldom) {
		taken, err := p.cancel(ctx, run)
		if taken || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (p *Process) cancel(ctx context.Context, run string) (taken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	status, body, err := p.small(ctx, http.MethodPost, "/cancel?run_id="+url.QueryEscape(run))
	if err != nil {
		return false, fmt.Errorf("cancel the run %s: %w", run, err)
	}
	if status != http.StatusOK && status != http.StatusNoContent && status != http.StatusAccepted {
		return false, fmt.Errorf("cancel the run %s: the tool answered with status %d", run, status)
	}
	var said struct {
		Cancelled *bool `json:"cancelled"`
	}
	if json.Unmarshal(body, &said) != nil || said.Cancelled == nil {
		return true, nil // it need not say anything
	}
	return *said.Cancelled, nil
}
