package selfref

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/messages"
)

// Options makes a Backend. The zero value of each field is its default.
type Options struct {
	// Store holds the conversations. nil: a Memory.
	Store Store
	// Agent runs a fork: it goes on from the fork's history with its message and
	// returns what it came to. Its ctx ends when the fork is cancelled. nil: there
	// are no forks.
	Agent func(ctx context.Context, f Fork) (Answer, error)
	// MaxRunning is how many forks may run at once, MaxDepth how deep forks of
	// forks may go, MaxKept how many results are kept for each session. 0: 16, 4
	// and 256.
	MaxRunning, MaxDepth, MaxKept int
	// MaxBytes bounds the responses that are kept for all sessions together: when
	// they have more, the oldest are dropped. 0: 64 MiB.
	MaxBytes int64
	// Timeout bounds one fork. 0: none.
	Timeout time.Duration
	// CloseTimeout bounds the wait for agents that do not heed the end of their
	// context. 0: 5 s.
	CloseTimeout time.Duration
	// OnCommit is called for every compaction that was committed, or could not be, at
	// the end of the call that queued it and before that returns, which does not wait
	// for it for ever. nil: the host is not called.
	OnCommit func(Commit)
	// Logger gets what a store did not do and no code waits for. nil: it is
	// discarded.
	Logger *slog.Logger
}

// Backend is the pack's backend. Any goroutine may use it.
type Backend struct {
	o    Options
	life context.Context
	end  context.CancelCauseFunc
	room int // bytes of JSON that gather_all returns

	mu       sync.Mutex
	busy     map[string]chan struct{}        // keys that are being changed; guarded by mu
	queued   map[queueKey]*compaction        // until the call's end; guarded by mu
	origins  map[messages.SessionKey]origin  // of sessions that belong to forks; guarded by mu
	families map[messages.SessionKey]*family // by the session at the root; guarded by mu
	running  int                             // forks that have a place; guarded by mu
	names    map[*fork]struct{}              // those that run; guarded by mu
	kept     []*fork                         // those whose result is kept, by their end; guarded by mu
	bytes    int64                           // of their responses; guarded by mu
	made     map[string]struct{}             // the conversations that were made for forks; guarded by mu
	forks    sync.WaitGroup
}

// New returns a backend.
func New(o Options) *Backend {
	if o.Store == nil {
		o.Store = &Memory{}
	}
	def := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	def(&o.MaxRunning, 16)
	def(&o.MaxDepth, 4)
	def(&o.MaxKept, 256)
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Backend{
		o: o, room: maxGathered, busy: map[string]chan struct{}{}, queued: map[queueKey]*compaction{}, made: map[string]struct{}{},
		origins: map[messages.SessionKey]origin{}, families: map[messages.SessionKey]*family{}, names: map[*fork]struct{}{},
	}
	b.life, b.end = context.WithCancelCause(context.Background())
	return b
}

// Pack returns the pack of the backend: its name is selfref.
func (b *Backend) Pack() primitive.Pack {
	return primitive.Pack{Name: "selfref", Backend: b, Guidance: guidance, Primitives: append(b.contextPrimitives(), b.forkPrimitives()...)}
}

const guidance = "Use runtime.selfref.context to see, remember and shorten your own conversation, and runtime.selfref.fork to let copies of yourself work on parts of a task. " +
	"runtime.selfref.guide() says how to use it well."

func bad(kind, format string, args ...any) error {
	return &messages.HostError{Type: kind, Message: fmt.Sprintf(format, args...)}
}

// lock takes a key for one change.
func (b *Backend) lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		b.mu.Lock()
		wait := b.busy[key]
		if wait == nil {
			mine := make(chan struct{})
			b.busy[key] = mine
			b.mu.Unlock()
			return func() {
				b.mu.Lock()
				delete(b.busy, key)
				b.mu.Unlock()
				close(mine)
			}, nil
		}
		b.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// key is the conversation that a call means: the one it names, that of its call,
// or the only one that there is beside those of forks.
func (b *Backend) key(ctx context.Context, c *primitive.Call, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	b.mu.Lock()
	o, isFork := b.origins[c.Session]
	b.mu.Unlock()
	switch {
	case c.Memory != "":
		return c.Memory, nil
	case isFork:
		return o.fork.Key, nil
	}
	keys, err := b.o.Store.Keys(ctx)
	if err != nil {
		return "", fmt.Errorf("list the conversations: %w", err)
	}
	only, n := "", 0
	for _, k := range keys {
		if !IsForkKey(k) && !slices.Contains(keys, markKey(k)) {
			only = k
			n++
		}
	}
	if n == 1 {
		return only, nil
	}
	return "", bad("ValueError", "there are %d conversations; say which one with key", n)
}

// load reads a conversation; one that does not exist is a KeyError.
func (b *Backend) load(ctx context.Context, key string) ([]Message, error) {
	list, err := b.o.Store.Load(ctx, key)
	if errors.Is(err, ErrNoConversation) {
		return nil, bad("KeyError", "there is no conversation %q", key)
	}
	if err != nil {
		return nil, fmt.Errorf("load the conversation %q: %w", key, err)
	}
	return list, nil
}

// change reads a conversation, lets f change it, and writes it.
func (b *Backend) change(ctx context.Context, key string, f func(*parts) (write bool)) error {
	unlock, err := b.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	list, err := b.load(ctx, key)
	if err != nil {
		return err
	}
	p := split(list)
	if !f(&p) {
		return nil
	}
	return b.save(ctx, key, p.join())
}

func (b *Backend) save(ctx context.Context, key string, list []Message) error {
	if err := Check(list); err != nil {
		return bad("ValueError", "the conversation %q would be inconsistent: %v", key, err)
	}
	if err := b.o.Store.Save(ctx, key, list); err != nil {
		return fmt.Errorf("save the conversation %q: %w", key, err)
	}
	return nil
}
