package toolproc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// errNotHealthy is matched when StartTimeout is spent.
var errNotHealthy = errors.New("it did not become healthy in time")

// StartError says why a tool did not come up.
type StartError struct {
	Tool string
	// Kind is venv, secret or spawn.
	Kind messages.ToolErrorKind
	// Hint is what to do next, "" when there is nothing to say.
	Hint string
	// Tail is what the process wrote to standard error.
	Tail string
	Err  error
}

// Error names the tool and the problem.
func (e *StartError) Error() string {
	return "the tool " + e.Tool + " could not be started: " + e.Err.Error()
}

// Unwrap returns the problem.
func (e *StartError) Unwrap() error { return e.Err }

// ToolError is the error as a run reports it.
func (e *StartError) ToolError() *messages.ToolError {
	return &messages.ToolError{Kind: e.Kind, Message: e.Error(), Hint: e.Hint, Stderr: bounded(e.Tail)}
}

// Log is all that is kept of standard error.
func (e *StartError) Log() string { return e.Tail }

func (e *StartError) portTaken() bool {
	var exited *process.ExitError
	return errors.As(e.Err, &exited) && strings.Contains(strings.ToLower(e.Tail), "address already in use")
}

// exitedError says that the process ended before it was up.
type exitedError struct{ err error }

func (e *exitedError) Error() string {
	if e.err == nil {
		return "it exited with code 0 before it was healthy"
	}
	return "it " + e.err.Error() + " before it was healthy"
}

func (e *exitedError) Unwrap() error { return e.err }

// awaitHealth returns when the tool says that it is well.
func (p *Process) awaitHealth(ctx context.Context, began time.Time) error {
	ticker := time.NewTicker(healthSoon)
	defer ticker.Stop()
	last := errors.New("not asked yet")
	for {
		if time.Since(began) > healthEager {
			ticker.Reset(healthEvery)
		}
		select {
		case <-p.proc.Done():
			return &exitedError{p.proc.Err()}
		case <-ctx.Done():
			if spent, ok := errors.AsType[*opportunity.SpentError](context.Cause(ctx)); ok {
				return fmt.Errorf("%w: after %v /healthz says: %w", errNotHealthy, spent.Measure, last)
			}
			return fmt.Errorf("given up: %w", context.Cause(ctx))
		case <-ticker.C:
			err := p.probe(ctx)
			if err == nil {
				return nil
			}
			if ctx.Err() == nil {
				last = err
			}
		}
	}
}

// probe is one look at /healthz that the end of the process ends.
func (p *Process) probe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() { // ends with this function
		defer close(ended)
		select {
		case <-p.proc.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := p.Healthy(ctx)
	cancel()
	<-ended
	return err
}

// Healthy asks the tool whether it is well: GET /healthz has to be answered with
// {"ok": true}, within a second in which it had the chance to, and 10 s in all.
func (p *Process) Healthy(ctx context.Context) error {
	ctx, done := opportunity.Within(ctx, healthBudget, p.Subject())
	defer done()
	status, body, err := p.small(ctx, http.MethodGet, "/healthz")
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("it answered with status %d", status)
	}
	var health struct {
		OK *bool `json:"ok"`
	}
	if err := json.Unmarshal(body, &health); err != nil || health.OK == nil {
		return fmt.Errorf(`it answered %s, not {"ok": true}`, brief(body))
	}
	if !*health.OK {
		return errors.New("the tool reports that it is not well")
	}
	return nil
}

// Identity names the process, also when another one has its number.
func (p *Process) Identity() process.Identity { return p.proc.Identity() }

// Subject is the process, whose threads answer.
func (p *Process) Subject() opportunity.Subject { return opportunity.Processes(p.Identity()) }

// compareSchema compares what the process says of itself with tool.json.
func (p *Process) compareSchema(ctx context.Context) ([]toolspec.Problem, error) {
	ctx, done := opportunity.Within(ctx, schemaBudget, p.Subject())
	defer done()
	status, body, err := p.small(ctx, http.MethodGet, "/schema")
	if err != nil {
		return nil, fmt.Errorf("/schema could not be compared with tool.json: %w", err)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("/schema could not be compared with tool.json: it answered with status %d", status)
	}
	diff, err := toolspec.Diff(p.o.Tool.Raw, body, maxDiffs+1)
	if err != nil {
		return nil, fmt.Errorf("/schema could not be compared with tool.json: %w", err)
	}
	return diff, nil
}

// small makes a request with a small answer.
func (p *Process) small(ctx context.Context, method, path string) (int, []byte, error) {
	resp, err := p.request(ctx, method, path, nil, nil)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSmallBody))
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer to %s: %w", path, err)
	}
	return resp.StatusCode, body, nil
}

// request makes one request. Its error names the path, and not the address.
func (p *Process) request(ctx context.Context, method, path string, body *payload, of *call) (*http.Response, error) {
	var data io.Reader = http.NoBody
	if body != nil {
		data = bytes.NewReader(body.data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:"+strconv.Itoa(p.port)+path, data)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", path, err)
	}
	req.Header.Set("X-Coppice-Token", p.token)
	if body != nil {
		req.Header.Set("Content-Type", body.kind)
	}
	if of != nil {
		req.Header.Set("X-Pixie-Run-Id", of.Run)
		if of.dir != "" {
			req.Header.Set("X-Pixie-Artefacts-Dir", of.dir)
		}
	}
	resp, err := p.client.Do(req)
	if err != nil {
		if spent, ok := errors.AsType[*opportunity.SpentError](context.Cause(ctx)); ok {
			return nil, fmt.Errorf("ask %s: %w", path, spent)
		}
		return nil, fmt.Errorf("ask %s: %w", path, errors.Unwrap(err))
	}
	return resp, nil
}

func brief(body []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(body), "\ufffd"))
	if r := []rune(text); len(r) > 120 {
		text = string(r[:117]) + "..."
	}
	return strconv.Quote(text)
}

// startHint says what a failed start usually means.
func (p *Process) startHint(err error) string {
	tail := p.stderr.String()
	var exited *process.ExitError
	why, _ := traced(tail)
	limited := p.o.memoryBytes() > 0
	ended, isEnd := errors.AsType[*exitedError](err)
	switch {
	case isEnd && ended.err == nil && strings.TrimSpace(tail) == "":
		return p.o.Tool.Entrypoint + ` starts no server: is if __name__ == "__main__": missing at its end?`
	case isEnd && limited && (why.memory() || why.thread() || why.unmapped() || errors.As(err, &exited) && exited.Signal != 0):
		return fmt.Sprintf("max_memory_mb is %d; the tool may need more", p.o.Tool.MaxMemoryMB)
	case isEnd && why.missing():
		return "a package is missing in the tool's environment: coppice tool setup " + p.o.Tool.ID
	case isEnd:
		return p.o.Tool.Entrypoint + " ends on start; see its standard error"
	case errors.Is(err, errNotHealthy):
		return "the tool has to listen on 127.0.0.1 at the port that --port names, and to answer /healthz with {\"ok\": true}"
	default:
		return ""
	}
}
