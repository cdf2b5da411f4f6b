package vitals

import (
	"context"
	"slices"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

// question is one that the code of a call asks.
type question struct {
	session string // its id
	asked   client.Question
}

// executionKey is the key of a context's value that says which execution a call is.
type executionKey struct{}

// Of is a context for the call of an execution: its questions are told under that name.
// Without it they are told under the call's own.
func Of(ctx context.Context, execution string) context.Context {
	return context.WithValue(ctx, executionKey{}, execution)
}

// Attachment connects the vitals to all calls of a host.
func (v *Vitals) Attachment() sinks.Attachment {
	return sinks.Attachment{Name: "vitals", Final: true, For: func(ctx context.Context, x messages.Execute) sinks.Sink {
		id, named := ctx.Value(executionKey{}).(string)
		if !named {
			id = x.ID
		}
		return &call{v: v, id: id, key: x.Key, began: time.Now(), cells: len(x.Cells)}
	}}
}

// call is the sink of one call.
type call struct {
	v     *Vitals
	id    string
	key   messages.SessionKey
	began time.Time
	cells int
	asks  bool
}

// Consume takes an event: a question, what comes after one, or the end.
func (c *call) Consume(_ context.Context, e messages.Event) error {
	switch e := e.(type) {
	case messages.InputRequest:
		c.asks = true
		c.v.ask(c.key, c.id, e)
	case messages.Final:
		c.v.final(c, e.Result)
	case messages.Notice: // of the runtime: the code did not come on for that
	default:
		if c.asks { // the code has come on
			c.asks = false
			c.v.Answered(c.id)
		}
	}
	return nil
}

// Flush does nothing: what was counted is visible at once.
func (c *call) Flush(context.Context) error { return nil }

// Close forgets the question of a call whose end was not told.
func (c *call) Close() error {
	c.v.Answered(c.id)
	return nil
}

// ask keeps a question until it is answered.
func (v *Vitals) ask(key messages.SessionKey, id string, e messages.InputRequest) {
	q := client.Question{Execution: id, ID: e.ID, Prompt: short(e.Prompt), Password: e.Password, Asked: time.Now()}
	if e.IdleTimeoutMS > 0 {
		q.Until = q.Asked.Add(time.Duration(e.IdleTimeoutMS) * time.Millisecond)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	session := key.ID()
	if v.calls[id] == nil {
		v.asking[session] = append(v.asking[session], id)
	}
	v.calls[id] = &question{session, q}
	v.tellLocked(key, client.Moment{At: q.Asked, What: "asked", Why: q.Prompt})
}

// Answered forgets the question of a call, by the name that it has for Of: it has its answer, or needs none any more.
func (v *Vitals) Answered(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answeredLocked(id)
}

func (v *Vitals) answeredLocked(id string) {
	q := v.calls[id]
	if q == nil {
		return
	}
	delete(v.calls, id)
	left := slices.DeleteFunc(v.asking[q.session], func(other string) bool { return other == id })
	if v.asking[q.session] = left; len(left) == 0 {
		delete(v.asking, q.session)
	}
}

// final counts the end of a call, and says what it means for the session.
func (v *Vitals) final(c *call, r messages.Result) {
	took := r.Duration
	if took <= 0 {
		took = time.Since(c.began)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answeredLocked(c.id)
	if c.cells == 0 && r.Outcome == messages.OutcomeOK {
		return // it only asked for a kernel
	}
	v.took(r.Outcome, took)
	switch r.Outcome {
	case messages.OutcomeOK:
		if s := v.stories[c.key.ID()]; s != nil {
			s.trouble = ""
		}
	case messages.OutcomeLost:
		v.tellLocked(c.key, client.Moment{At: time.Now(), What: "lost", Why: "a call was lost: " + short(r.Reason)})
	case messages.OutcomeNotStarted:
		v.refused.add(time.Now(), r)
	default:
	}
}

// refusals counts calls that were refused, for a minute.
type refusals struct {
	began  time.Time
	count  int
	reason string
}

func (f *refusals) add(at time.Time, r messages.Result) {
	if at.Sub(f.began) > time.Minute {
		*f = refusals{began: at}
	}
	f.count++
	f.reason = short(r.Reason)
}

// recent are the refusals that are not older than a minute or two.
func (f *refusals) recent(now time.Time) refusals {
	if now.Sub(f.began) > 2*time.Minute {
		return refusals{}
	}
	return *f
}

var _ sinks.Sink = (*call)(nil)
