package selfref

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// Commit is what became of a compaction at the end of its call.
type Commit struct {
	// Key is the conversation, Session and Exec whose code compacted it.
	Key     string
	Session messages.SessionKey
	Exec    string
	// Summary is what stands for the messages that are gone.
	Summary Summary
	// Kept is how many messages follow the summary: those that came after it was
	// made, and a call of a tool whose answer is still to come.
	Kept int
	// Err says why the conversation is as it was; nil when it was compacted.
	Err error
}

// queueKey is a compaction's place: a call may queue one for each conversation.
type queueKey struct{ exec, key string }

// compaction is one that waits for the end of its call.
type compaction struct {
	session  messages.SessionKey
	summary  Summary
	remember []string
	// seen is the conversation that the summary is of, without the system message.
	seen []Message
}

// kept are the messages that stay when the summary takes the place of the others:
// those that the host has added since, and before them a call that is not answered
// yet, whose answer could not stand without it.
func (q *compaction) kept(now []Message) []Message {
	n := len(now)
	same := func(a, b Message) bool { return reflect.DeepEqual(a, b) }
	if len(q.seen) <= n && slices.EqualFunc(q.seen, now[:len(q.seen)], same) {
		n = len(q.seen)
	}
	return now[len(Snapshot(now[:n])):]
}

func (b *Backend) compact(ctx context.Context, c *primitive.Call) (any, error) {
	var a struct {
		Summary
		Remember []string `json:"remember"`
		Key      string   `json:"key"`
	}
	if err := c.Bind(&a); err != nil {
		return nil, err
	}
	for name, text := range map[string]*string{"goal": &a.Goal, "instruction": &a.Instruction, "current_status": &a.CurrentStatus} {
		if *text = strings.TrimSpace(*text); *text == "" {
			return nil, bad("ValueError", "%s is blank", name)
		}
	}
	for _, l := range []*[]string{&a.Discoveries, &a.Completed, &a.LikelyNext, &a.Relevant, &a.Remember} {
		kept := []string{}
		for _, s := range *l {
			if s = strings.Join(strings.Fields(s), " "); s != "" {
				kept = append(kept, s)
			}
		}
		*l = kept
	}
	key, err := b.key(ctx, c, a.Key)
	if err != nil {
		return nil, err
	}
	list, err := b.load(ctx, key)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.queued[queueKey{c.Exec, key}] = &compaction{session: c.Session, summary: a.Summary, remember: slices.Clone(a.Remember), seen: split(list).rest}
	b.mu.Unlock()
	return map[string]any{"status": "queued", "active_key": key, "summary": a.Summary, "assistant_message": a.Summary.render(), "remember": a.Remember}, nil
}

// OnCallEnd cancels the forks of a call that was cut off, commits the compactions
// that it has queued, and waits for the copies of its live forks. Its error is for
// whoever reads the result of the call.
func (b *Backend) OnCallEnd(ctx context.Context, end primitive.CallEnd) error {
	if end.Outcome != messages.OutcomeOK && end.Outcome != messages.OutcomeError {
		b.cancelOf(end.Exec)
	}
	b.mu.Lock()
	due := map[string]*compaction{}
	for at, q := range b.queued {
		if at.exec == end.Exec {
			due[at.key] = q
			delete(b.queued, at)
		}
	}
	b.mu.Unlock()
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(due)) {
		errs = append(errs, b.commit(ctx, end, key, due[key]))
	}
	b.awaitCopies(ctx, end.Exec)
	return errors.Join(errs...)
}

// commit compacts one conversation, and tells the host.
func (b *Backend) commit(ctx context.Context, end primitive.CallEnd, key string, q *compaction) error {
	c := Commit{Key: key, Session: q.session, Exec: end.Exec, Summary: q.summary}
	c.Err = b.change(ctx, key, func(p *parts) bool {
		for _, text := range q.remember {
			p.remember(text)
		}
		kept := q.kept(p.rest)
		c.Kept = len(kept)
		p.rest = append([]Message{{Role: "assistant", Content: q.summary.render()}}, kept...)
		return true
	})
	data := map[string]any{"memory_key": key, "kept": c.Kept}
	name := "selfref_compaction_committed"
	if c.Err != nil {
		name, data["kept"], data["error_message"] = "selfref_compaction_failed", nil, c.Err.Error()
	}
	end.Emit(name, data)
	if b.o.OnCommit != nil {
		supervisor.Guarded(func() error { b.o.OnCommit(c); return nil }, func(err error) {
			if err != nil {
				b.o.Logger.Error("OnCommit failed inside", "err", err)
			}
		})
	}
	if c.Err != nil {
		return fmt.Errorf("the conversation %q was not compacted and is as it was: %w", key, c.Err)
	}
	return nil
}

// awaitCopies waits until the live forks of a call have their copies: the next
// call of the session could wait for them, and they for its end.
func (b *Backend) awaitCopies(ctx context.Context, exec string) {
	b.mu.Lock()
	var live []*fork
	for f := range b.names {
		if f.Live && f.exec == exec {
			live = append(live, f)
		}
	}
	b.mu.Unlock()
	for _, f := range live {
		select {
		case <-f.copied:
			continue
		case <-ctx.Done():
		}
		select {
		case <-f.copied: // both had happened
		default:
			f.cancel(errors.New("the session could not be copied in time"))
		}
	}
}
