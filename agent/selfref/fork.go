package selfref

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// Fork is what an agent is started with.
type Fork struct {
	// ID is fork_N, Parent that of the fork that started it, "" at the root.
	ID, Parent string
	// Depth is 1 for a fork of the root.
	Depth int
	// Source is the key of the parent's conversation, Key that of the fork's own,
	// which no other conversation has or had: see [IsForkKey]. It holds History
	// already.
	Source, Key string
	// Message is the task.
	Message string
	// Args are the other arguments of spawn, by name.
	Args map[string]json.RawMessage
	// Live asks for a copy of the parent's interpreter in place of a new one.
	Live bool
	// History is a copy of the parent's conversation.
	History []Message
	// ParentSession is whose code started the fork, Owner its owner.
	ParentSession messages.SessionKey
	Owner         string
	// Bind says that the calls of a session belong to the fork: forks that they
	// start are its children, and they mean its conversation. It holds until the
	// fork has ended.
	Bind func(messages.SessionKey)
	// Copied says that the copy of the parent's interpreter is made. The end of
	// the call that started a live fork waits for it, since nothing may run in the
	// parent meanwhile.
	Copied func()
}

// Answer is what an agent came to.
type Answer struct {
	// Response is any value that JSON has.
	Response any
}

// Statuses of a fork.
const (
	statusRunning   = "running"
	statusCompleted = "completed"
	statusError     = "error"
)

// origin says which fork a session belongs to.
type origin struct {
	root messages.SessionKey
	fork *fork
}

// fork is one that was started. Its fields but the last are set before it runs.
type fork struct {
	Fork
	n      int
	root   messages.SessionKey
	family *family
	exec   string // the call that started it
	named  bool   // code has named its conversation, which stays
	cancel context.CancelCauseFunc
	done   chan struct{}
	copied chan struct{} // closed by Copied, at the latest with done
	once   sync.Once     // of copied

	sessions []messages.SessionKey // bound to it; guarded by the backend's mu
	events   []event               // not told yet; guarded by the backend's mu
	waits    map[*fork]int         // the forks that it gathers now, each so often; guarded by the backend's mu
	dropped  bool                  // the result is not wanted; guarded by the backend's mu
	// answer and err are written before done is closed.
	answer json.RawMessage
	err    *messages.HostError
}

type event struct {
	name string
	data map[string]any
}

// errCancelled ends a fork that was cancelled.
var errCancelled = errors.New("the fork was cancelled")

// spawn starts a fork.
func (b *Backend) spawn(ctx context.Context, c *primitive.Call) (any, error) {
	var a struct {
		Message string
		Kwargs  map[string]json.RawMessage
	}
	if err := c.Bind(&a); err != nil {
		return nil, err
	}
	if _, ok := a.Kwargs["include_history"]; ok {
		return nil, bad("TypeError", "spawn takes no include_history; gather_all does")
	}
	if strings.TrimSpace(a.Message) == "" {
		return nil, bad("ValueError", "the message is blank: it is the fork's task")
	}
	if b.o.Agent == nil {
		return nil, bad("RuntimeError", "this host runs no forks: it has no agent")
	}
	f := &fork{exec: c.Exec, done: make(chan struct{}), copied: make(chan struct{})}
	f.Copied = func() { f.once.Do(func() { close(f.copied) }) }
	f.Message, f.ParentSession, f.Owner = a.Message, c.Session, c.Owner
	control := map[string]*string{"source_memory_key": &f.Source, "fork_memory_key": &f.Key}
	var kernel string
	control["kernel"] = &kernel
	for name, into := range control {
		if raw, ok := a.Kwargs[name]; ok {
			if json.Unmarshal(raw, into) != nil {
				return nil, bad("TypeError", "%s is not a string", name)
			}
			delete(a.Kwargs, name)
		}
	}
	switch kernel {
	case "", "fresh":
	case "live":
		f.Live = true
	default:
		return nil, bad("ValueError", "kernel is fresh or live, not %q", kernel)
	}
	f.Args = a.Kwargs
	key, err := b.key(ctx, c, f.Source)
	if err != nil {
		return nil, err
	}
	list, err := b.load(ctx, key)
	if err != nil {
		return nil, err
	}
	f.Source, f.History, f.named = key, Snapshot(list), f.Key != ""
	if err := b.place(f); err != nil {
		return nil, err
	}
	err = b.found(ctx, f)
	if err == nil {
		err = context.Cause(ctx) // the code may have given it up meanwhile
	}
	if err == nil {
		err = b.begin(f)
	}
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.running--
		if _, ok := b.made[f.Key]; ok {
			b.deleteLocked(f)
		}
		return nil, err
	}
	b.tell(c, f)
	return f.handle(statusRunning), nil
}

// place gives a fork its place among those that run, and its number.
func (b *Backend) place(f *fork) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.root = f.ParentSession
	if from, nested := b.origins[f.ParentSession]; nested {
		f.root, f.Parent, f.Depth = from.root, from.fork.ID, from.fork.Depth
	}
	f.Depth++
	switch {
	case b.life.Err() != nil:
		return errClosing()
	case f.Depth > b.o.MaxDepth:
		return bad("RuntimeError", "forks of forks may be %d deep, and this one would be %d", b.o.MaxDepth, f.Depth)
	case b.running >= b.o.MaxRunning:
		return bad("RuntimeError", "%d forks run already, and %d is the most; gather or cancel some", b.running, b.o.MaxRunning)
	}
	if f.family = b.families[f.root]; f.family == nil {
		f.family = &family{}
		b.families[f.root] = f.family
	}
	f.family.last++
	f.n = f.family.last
	f.ID = "fork_" + strconv.Itoa(f.n)
	if !f.named {
		f.Key = forkKey(f.Source, f.n)
	}
	b.running++
	return nil
}

func errClosing() error { return bad("RuntimeError", "the host is shutting down and starts no forks") }

// found makes the conversation of a fork. It never takes the place of another.
func (b *Backend) found(ctx context.Context, f *fork) error {
	unlock, err := b.lock(ctx, f.Key)
	if err != nil {
		return err
	}
	defer unlock()
	switch _, err := b.o.Store.Load(ctx, f.Key); {
	case err == nil:
		return bad("ValueError", "there is a conversation %q already, and a fork begins one of its own; give fork_memory_key another name, or leave it out", f.Key)
	case !errors.Is(err, ErrNoConversation):
		return fmt.Errorf("load the conversation %q: %w", f.Key, err)
	}
	if f.named {
		if err := b.save(ctx, markKey(f.Key), nil); err != nil {
			return err
		}
	} else {
		b.mu.Lock()
		b.made[f.Key] = struct{}{}
		b.mu.Unlock()
	}
	return b.save(ctx, f.Key, f.History)
}

// begin starts a fork.
func (b *Backend) begin(f *fork) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.life.Err() != nil:
		return errClosing()
	case b.families[f.root] != f.family:
		return bad("RuntimeError", "the session has ended and starts no forks")
	}
	f.family.add(f)
	b.dropOldLocked(f.family)
	f.Bind = func(key messages.SessionKey) {
		b.mu.Lock()
		defer b.mu.Unlock()
		f.sessions = append(f.sessions, key)
		b.origins[key] = origin{root: f.root, fork: f}
	}
	b.names[f] = struct{}{}
	ctx, cancel := context.WithCancelCause(b.life)
	f.cancel = cancel
	b.noteLocked(f, "selfref_fork_spawned", statusRunning, nil)
	b.forks.Go(func() { b.run(ctx, f) })
	return nil
}

// run is the goroutine of a fork.
func (b *Backend) run(ctx context.Context, f *fork) {
	defer f.cancel(nil)
	if b.o.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, b.o.Timeout)
		defer stop()
	}
	supervisor.Guarded(func() error {
		b.note(f, "selfref_fork_start", statusRunning, nil)
		given := f.Fork
		f.History = nil // the store has it
		answer, err := b.o.Agent(ctx, given)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(answer.Response)
		if err != nil {
			return bad("TypeError", "the fork's response cannot be sent: %v", err)
		}
		f.answer = raw
		return nil
	}, func(err error) { b.ended(ctx, f, err) })
}

// ended keeps the result of a fork and wakes those who wait.
func (b *Backend) ended(ctx context.Context, f *fork, err error) {
	if err != nil {
		f.err = failure(ctx, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	delete(b.names, f)
	for _, key := range f.sessions {
		delete(b.origins, key)
	}
	if f.err != nil {
		b.noteLocked(f, "selfref_fork_error", statusError, map[string]any{"error_type": f.err.Type, "error_message": f.err.Message})
	} else {
		b.noteLocked(f, "selfref_fork_end", statusCompleted, nil)
	}
	f.Copied()
	close(f.done)
	b.keepLocked(f)
}

// failure is why a fork failed, for the code that started it.
func failure(ctx context.Context, err error) *messages.HostError {
	he := reasonOf(ctx, err)
	if len(he.Message) <= maxReason {
		return he
	}
	return &messages.HostError{Type: he.Type, Message: strings.ToValidUTF8(he.Message[:maxReason], "") + "…"}
}

// maxReason is how many bytes of an agent's error code sees.
const maxReason = 4 << 10

func reasonOf(ctx context.Context, err error) *messages.HostError {
	if exit, ok := errors.AsType[supervisor.Exit](err); ok {
		return &messages.HostError{Type: "RuntimeError", Message: "the agent failed inside (" + string(exit.Kind) + ")"}
	}
	if he, ok := errors.AsType[*messages.HostError](err); ok {
		return he
	}
	switch {
	case ctx.Err() == nil:
		return &messages.HostError{Type: "RuntimeError", Message: err.Error()}
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return &messages.HostError{Type: "TimeoutError", Message: "the fork took too long: " + err.Error()}
	default:
		return &messages.HostError{Type: "CancelledError", Message: context.Cause(ctx).Error()}
	}
}

// handle is what spawn returns.
func (f *fork) handle(status string) map[string]any {
	h := map[string]any{"fork_id": f.ID, "parent_fork_id": nil, "depth": f.Depth, "source_memory_key": f.Source, "memory_key": f.Key, "status": status}
	if f.Parent != "" {
		h["parent_fork_id"] = f.Parent
	}
	return h
}

func (b *Backend) note(f *fork, name, status string, more map[string]any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noteLocked(f, name, status, more)
}

func (b *Backend) noteLocked(f *fork, name, status string, more map[string]any) {
	data := f.handle(status)
	maps.Copy(data, more)
	f.events = append(f.events, event{name, data})
}

// tell emits what happened to a fork and was not told yet.
func (b *Backend) tell(c *primitive.Call, f *fork) {
	b.mu.Lock()
	events := f.events
	f.events = nil
	b.mu.Unlock()
	for _, e := range events {
		c.Emit(e.name, e.data)
	}
}
