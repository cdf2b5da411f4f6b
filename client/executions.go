package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coppice-run/coppice/internal/sse"
	"github.com/coppice-run/coppice/messages"
)

// leaving is how long Run waits for the end of an execution that it has
// interrupted.
const leaving = 15 * time.Second

// Start starts an execution. Executions of one session run in the order in which
// they were started. The server keeps those that have ended for a while.
func (c *Client) Start(ctx context.Context, e Execute) (Execution, error) {
	e.ID = cmp.Or(e.ID, messages.NewID())
	return c.start(ctx, "api/executions", sessionOf(e.Session, e.Cwd, e.Workspace, e.Kernel), e.ID, e)
}

// Executions lists those that the server knows, the newest first: with a session,
// a directory, a workspace or a kernelspec in the key only its own.
func (c *Client) Executions(ctx context.Context, key messages.SessionKey) ([]Execution, error) {
	query := url.Values{}
	if key.Session != "" {
		query.Set("session", key.Session)
	}
	if key.Cwd != "" {
		query.Set("cwd", key.Cwd)
	}
	within(query, key)
	var list struct {
		Executions []Execution `json:"executions"`
	}
	err := c.ask(ctx, http.MethodGet, "api/executions", query, nil, &list)
	return list.Executions, err
}

// Execution describes one, with its result when it has ended.
func (c *Client) Execution(ctx context.Context, id string) (Execution, error) {
	var x Execution
	err := c.ask(ctx, http.MethodGet, execution(id, ""), c.epochs.place(id), nil, &x)
	return x, err
}

// Wait returns an execution when it has ended.
func (c *Client) Wait(ctx context.Context, id string) (Execution, error) {
	for {
		var x Execution
		err := c.ask(ctx, http.MethodGet, execution(id, ""), c.epochs.place(id, "wait", "30"), nil, &x)
		if err != nil || x.State == Ended {
			return x, err
		}
	}
}

func execution(id, action string) string {
	return "api/executions/" + url.PathEscape(id) + action
}

// Answer answers a question of an execution's code, by the id of its
// InputRequest. The status says what became of the answer: [messages.InputAnswered], too, where
// the server's word on it was lost, and it was sent again. While Run follows the execution, a
// server that does not know it was started again: the error has the code lost.
func (c *Client) Answer(ctx context.Context, id, question, value string) (messages.InputStatus, error) {
	in := struct {
		ID    string `json:"id"`
		Value string `json:"value"`
	}{question, value}
	var out struct {
		Status messages.InputStatus `json:"status"`
	}
	if err := c.ask(ctx, http.MethodPost, execution(id, "/input"), c.epochs.place(id), in, &out); err != nil { // it is taken once
		told, ok := errors.AsType[*Error](err)
		if ok && told.Status == http.StatusNotFound && told.Code == "not_found" && c.asked.follows(id) {
			err = errGone() // it was there: the server was started again
		}
		return "", err
	}
	c.asked.answered(id, question, out.Status)
	return out.Status, nil
}

// Cancel ends one execution, whether it runs or waits; its session is kept. It
// does not wait for the end.
func (c *Client) Cancel(ctx context.Context, id string) error {
	return c.ask(ctx, http.MethodPost, execution(id, "/cancel"), c.epochs.place(id), nil, nil)
}

// Events yields the events of an execution after the one with the given number, 0
// for all, until its Final. A connection that breaks is made again, from where it
// broke.
func (c *Client) Events(ctx context.Context, id string, after uint64) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		wait := c.newPause()
		defer wait.end()
		route := execution(id, "/events")
		if place := c.epochs.place(id); len(place) > 0 {
			route += "?" + place.Encode()
		}
		for {
			end, err := c.stream(ctx, http.MethodGet, route, nil, after, wait.alive, func(got sse.Event) (bool, error) {
				e, err := messages.ParseEvent([]byte(got.Data))
				if err != nil {
					return false, &brokenError{err}
				}
				switch n := e.Pos().Seq; {
				case n <= after: // seen before
					return true, nil
				case n != after+1:
					return false, &brokenError{fmt.Errorf("event %d follows event %d", n, after)}
				default:
					after = n
				}
				wait.progress()
				_, final := e.(messages.Final)
				return yield(c.sessions.told(id, e), nil) && !final, nil
			})
			if end {
				return
			}
			if !c.goOn(ctx, wait, err) {
				yield(nil, fmt.Errorf("events of execution %s after %d: %w", id, after, cmp.Or(context.Cause(ctx), err)))
				return
			}
		}
	}
}

// brokenError is what the server should not have sent: a repetition would not
// help.
type brokenError struct{ err error }

// Error returns the problem.
func (e *brokenError) Error() string { return "the server's events make no sense: " + e.err.Error() }

// Unwrap returns the problem.
func (e *brokenError) Unwrap() error { return e.err }

// goOn waits and reports whether a stream that ended with err is to be made
// again.
func (c *Client) goOn(ctx context.Context, wait *pause, err error) bool {
	if _, told := errors.AsType[*Error](err); told {
		return false
	}
	if _, broken := errors.AsType[*brokenError](err); broken {
		return false
	}
	return wait.next(ctx, err)
}

// Run is Start and Events. When ctx ends, or the consumer leaves, the execution
// is cancelled; in the first case its events go on to the Final, which says so,
// for as long as that takes within 15 s. A question that [Client.Answer] has answered is not
// yielded again by a server that takes over.
func (c *Client) Run(ctx context.Context, e Execute) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		x, err := c.Start(ctx, e)
		if err != nil {
			yield(nil, err)
			return
		}
		c.follow(ctx, x.ID, yield)
	}
}

// follow yields the events of an execution, and cancels it when ctx ends or the
// consumer leaves.
func (c *Client) follow(ctx context.Context, id string, yield func(messages.Event, error) bool) {
	c.asked.follow(id)
	defer c.asked.leave(id)
	read, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	cancelled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cancelled)
		last, done := context.WithTimeout(read, leaving)
		defer done()
		if err := c.Cancel(last, id); err != nil {
			end(errors.Join(context.Cause(ctx), err))
			return
		}
		<-last.Done()
		end(context.Cause(ctx))
	})
	left := true
	defer func() {
		end(nil)
		if !stop() {
			<-cancelled
			return
		}
		if left {
			last, done := context.WithTimeout(context.WithoutCancel(ctx), leaving)
			defer done()
			_ = c.Cancel(last, id) // who left hears of nothing
		}
	}()
	for e, err := range c.Events(read, id, 0) {
		if c.asked.again(id, e) {
			continue
		}
		if _, final := e.(messages.Final); final || err != nil {
			left = false
		}
		if told, ok := errors.AsType[*Error](err); ok && told.Status == http.StatusNotFound {
			err = errGone() // it was there when it began
		}
		if !yield(e, err) {
			return
		}
	}
}

// Changes yields what happens at the server, from now on, or after the change
// with the given number. A connection that breaks is made again; what the server
// no longer had then is reported by a Change of type "missed".
func (c *Client) Changes(ctx context.Context, after uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		wait := c.newPause()
		defer wait.end()
		for {
			end, err := c.stream(ctx, http.MethodGet, "api/changes", nil, after, wait.alive, func(got sse.Event) (bool, error) {
				change, err := parseChange([]byte(got.Data))
				if err != nil {
					return false, &brokenError{err}
				}
				after = change.Seq
				wait.progress()
				return yield(change, nil), nil
			})
			if end {
				return
			}
			if !c.goOn(ctx, wait, err) {
				yield(Change{}, fmt.Errorf("changes after %d: %w", after, cmp.Or(context.Cause(ctx), err)))
				return
			}
		}
	}
}

// Artifacts lists the outputs that were kept.
func (c *Client) Artifacts(ctx context.Context) ([]Artifact, error) {
	var list struct {
		Artifacts []Artifact `json:"artifacts"`
	}
	err := c.ask(ctx, http.MethodGet, "api/artifacts", nil, nil, &list)
	return list.Artifacts, err
}

// ReadArtifact returns bytes of an artifact from an offset on, as a reader that
// the caller closes. length 0 is all that follows.
func (c *Client) ReadArtifact(ctx context.Context, id int, offset, length int64) (io.ReadCloser, error) {
	path := "api/artifacts/" + strconv.Itoa(id)
	req, err := c.request(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	if offset > 0 || length > 0 {
		last := ""
		if length > 0 {
			last = strconv.FormatInt(offset+length-1, 10)
		}
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%s", offset, last))
	}
	resp, err := c.open(req)
	if err != nil {
		return nil, fmt.Errorf("read artifact %d: %w", id, err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		return nil, errors.Join(problem(resp.StatusCode, data), err, resp.Body.Close())
	}
	return resp.Body, nil
}

// ShowNotebook returns the text of a notebook.
func (c *Client) ShowNotebook(ctx context.Context, s Show) (Shown, error) {
	var out Shown
	err := c.ask(ctx, http.MethodPost, "api/notebooks/show", nil, s, &out)
	return out, err
}

// ApplyNotebook makes a notebook be what an edited text says.
func (c *Client) ApplyNotebook(ctx context.Context, a Apply) (Applied, error) {
	var out Applied
	err := c.ask(ctx, http.MethodPost, "api/notebooks/apply", nil, a, &out)
	return out, err
}

// RunNotebook starts the run of a notebook, which is an execution with events and
// an end like others. The cells of its events count from the first that is run.
func (c *Client) RunNotebook(ctx context.Context, r RunNotebook) (Execution, error) {
	r.ID = cmp.Or(r.ID, messages.NewID())
	session := sessionOf(r.Session, cmp.Or(r.Cwd, filepath.Dir(r.Path)), r.Workspace, "")
	return c.start(ctx, "api/notebooks/run", session, r.ID, r)
}

// LookBack says which part of what happened is wanted. The zero value: the newest 100.
type LookBack struct {
	// After and Before are numbers of events: only those after, or before. 0: any. With After
	// the oldest that fit are told, else the newest.
	After, Before uint64
	// Limit is how many at most, up to 1,000. 0: 100.
	Limit int
	// Filter are words that all have to occur, in any case.
	Filter string
	// Since and Until bound the time. Zero: not.
	Since, Until time.Time
}

// Past returns a page of what happened at the server.
func (c *Client) Past(ctx context.Context, o LookBack) (Past, error) {
	query := url.Values{}
	for name, n := range map[string]uint64{"after": o.After, "before": o.Before, "limit": uint64(max(o.Limit, 0))} {
		if n > 0 {
			query.Set(name, strconv.FormatUint(n, 10))
		}
	}
	if o.Filter != "" {
		query.Set("filter", o.Filter)
	}
	for name, at := range map[string]time.Time{"since": o.Since, "until": o.Until} {
		if !at.IsZero() {
			query.Set(name, at.Format(time.RFC3339Nano))
		}
	}
	var page Past
	err := c.ask(ctx, http.MethodGet, "api/events", query, nil, &page)
	return page, err
}
