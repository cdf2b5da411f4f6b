package selfref

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// forks may go, MaxKept how many results are kept. 0: 16, 4 and 256.
	MaxRunning, MaxDepth, MaxKept int
	// Timeout bounds one fork. 0: none.
	Timeout time.Duration
	// CloseTimeout bounds the wait for agents that do not heed the end of their
	// context. 0: 5 s.
	CloseTimeout time.Duration
}

// Backend is the pack's backend. Any goroutine may use it.
type Backend struct {
	o    Options
	life context.Context
	end  context.CancelCauseFunc

	mu       sync.Mutex
	busy     map[string]chan struct{}        // keys that are being changed; guarded by mu
	queued   map[string]*compaction          // by key, until the call's end; guarded by mu
	forkKeys map[string]bool                 // conversations of forks; guarded by mu
	origins  map[messages.SessionKey]origin  // of sessions that belong to forks; guarded by mu
	families map[messages.SessionKey]*family // by the session at the root; guarded by mu
	running  int                             // guarded by mu
	names    map[*fork]struct{}              // those that run; guarded by mu
	forks    sync.WaitGroup
}

// compaction is one that waits for the end of its call.
type compaction struct {
	exec     string
	summary  Summary
	remember []string
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
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = 5 * time.Second
	}
	b := &Backend{
		o: o, busy: map[string]chan struct{}{}, queued: map[string]*compaction{},
		forkKeys: map[string]bool{}, origins: map[messages.SessionKey]origin{}, families: map[messages.SessionKey]*family{}, names: map[*fork]struct{}{},
	}
	b.life, b.end = context.WithCancelCause(context.Background())
	return b
}

// Pack returns the pack of the backend: its name is selfref.
func (b *Backend) Pack() primitive.Pack {
	return primitive.Pack{Name: "selfref", Backend: b, Guidance: guidance, Primitives: append(b.contextPrimitives(), b.forkPrimitives()...)}
}

const guidance = "Use runtime.selfref.context to see, remember and shorten your own conversation, and runtime.selfref.fork to let copies of yourself work on parts of a task."

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
// or the only one that there is.
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
		return o.key, nil
	}
	keys, err := b.o.Store.Keys(ctx)
	if err != nil {
		return "", fmt.Errorf("list the conversations: %w", err)
	}
	b.mu.Lock()
	keys = slices.DeleteFunc(keys, func(k string) bool { return b.forkKeys[k] })
	b.mu.Unlock()
	if len(keys) == 1 {
		return keys[0], nil
	}
	return "", bad("ValueError", "there are %d conversations; say which one with key", len(keys))
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
	return b.save(ctx, key, p.join(p.rest))
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

// OnCallEnd commits the compactions that the call queued, and cancels its forks
// when it was cut off.
func (b *Backend) OnCallEnd(end primitive.CallEnd) {
	b.mu.Lock()
	due := map[string]*compaction{}
	for key, q := range b.queued {
		if q.exec == end.Exec {
			due[key] = q
			delete(b.queued, key)
		}
	}
	b.mu.Unlock()
	for key, q := range due {
		// A store that fails leaves the conversation as it was; the next inspect
		// shows that nothing is pending and nothing was committed.
		_ = b.change(b.life, key, func(p *parts) bool {
			for _, text := range q.remember {
				p.remember(text)
			}
			p.rest = []Message{{Role: "assistant", Content: q.summary.render()}}
			return true
		})
	}
	if end.Outcome != messages.OutcomeOK && end.Outcome != messages.OutcomeError {
		b.cancelOf(end.Exec)
	}
	b.awaitCopies(end.Exec)
}

// awaitCopies waits until the live forks of a call have their copies: the next
// call of the session could wait for them, and they for its end.
func (b *Backend) awaitCopies(exec string) {
	b.mu.Lock()
	var live []*fork
	for f := range b.names {
		if f.Live && f.exec == exec {
			live = append(live, f)
		}
	}
	b.mu.Unlock()
	timer := time.NewTimer(copyWait)
	defer timer.Stop()
	for _, f := range live {
		select {
		case <-f.copied:
		case <-timer.C:
			f.cancel(errors.New("the session could not be copied in time"))
			return
		}
	}
}

// copyWait bounds the wait for the copies of one call.
const copyWait = 10 * time.Second

// contextPrimitives are those about the conversation.
func (b *Backend) contextPrimitives() []primitive.Primitive {
	key := primitive.Parameter{Name: "key", Type: "str | None", Kind: primitive.KeywordOnly, Optional: true, Default: "None", Description: "Which conversation; the one that the cell belongs to if left out."}
	text := func(name, description string) primitive.Parameter {
		return primitive.Parameter{Name: name, Type: "str", Description: description}
	}
	texts := func(name, description string) primitive.Parameter {
		return primitive.Parameter{Name: name, Type: "list[str]", Description: description}
	}
	keyLast := key
	keyLast.Kind = primitive.PositionalOrKeyword
	return []primitive.Primitive{
		{
			Name: "guide", Description: "Says what the pack is for and how to use it well.", OutputType: "dict", OutputParsing: "namespace, overview, best_practices.",
			BestPractices: []string{"Read it once, before the first use of the pack."},
			Handler: func(context.Context, *primitive.Call) (any, error) {
				return map[string]any{"namespace": "selfref", "overview": guidance, "best_practices": practices}, nil
			},
		},
		{
			Name: "context.inspect", Description: "Shows the conversation, what it remembers, and the summary that it goes on from.", OutputType: "dict",
			OutputParsing: "active_key, experiences, summary or None, messages, has_pending_compaction.", Parameters: []primitive.Parameter{keyLast},
			BestPractices: []string{"Look before you compact: what is not in the summary is gone."},
			Handler:       func(ctx context.Context, c *primitive.Call) (any, error) { return b.inspect(ctx, c) },
		},
		{
			Name: "context.remember", Description: "Remembers a text for good: it becomes part of the system message.", OutputType: "dict", OutputParsing: "id and text.",
			Parameters:    []primitive.Parameter{text("text", "One short sentence."), keyLast},
			BestPractices: []string{"Remember what will matter later, one fact at a time."},
			NextSteps:     []string{"Keep the id: runtime.selfref.context.forget(id) takes it back."},
			Handler:       func(ctx context.Context, c *primitive.Call) (any, error) { return b.remember(ctx, c) },
		},
		{
			Name: "context.forget", Description: "Forgets what was remembered.", OutputType: "bool", OutputParsing: "Whether there was such an entry.",
			Parameters:    []primitive.Parameter{text("experience_id", "exp_N."), keyLast},
			BestPractices: []string{"Forget what has turned out to be wrong."},
			Handler:       func(ctx context.Context, c *primitive.Call) (any, error) { return b.forget(ctx, c) },
		},
		{
			Name: "context.compact", Description: "Replaces the conversation by a summary, at the end of this call.", OutputType: "dict",
			OutputParsing: "status queued, active_key, summary, assistant_message, remember.",
			Parameters: []primitive.Parameter{
				text("goal", "What all of this is for."), text("instruction", "What was asked."), texts("discoveries", "What was found out."),
				texts("completed", "What is done."), text("current_status", "Where things stand."), texts("likely_next_work", "What comes next."),
				texts("relevant_files_directories", "Where to look."),
				{Name: "remember", Type: "list[str] | None", Kind: primitive.KeywordOnly, Optional: true, Default: "None", Description: "What to remember besides."},
				key,
			},
			BestPractices: []string{"Say everything that whoever goes on must know; the other messages go."},
			NextSteps:     []string{"End the cell: the summary takes effect then."},
			Handler:       func(ctx context.Context, c *primitive.Call) (any, error) { return b.compact(ctx, c) },
		},
	}
}

var practices = []string{
	"Inspect before you change anything.", "Remember facts, not plans.", "Compact when a piece of work is done, not in the middle of it.",
	"Fork for work that can be done apart; a fork sees the conversation, not your variables.", "Look at the status of a fork's result before its response.",
}

func (b *Backend) inspect(ctx context.Context, c *primitive.Call) (any, error) {
	var a struct{ Key string }
	if err := c.Bind(&a); err != nil {
		return nil, err
	}
	key, err := b.key(ctx, c, a.Key)
	if err != nil {
		return nil, err
	}
	list, err := b.load(ctx, key)
	if err != nil {
		return nil, err
	}
	p := split(list)
	b.mu.Lock()
	pending := b.queued[key] != nil
	b.mu.Unlock()
	return struct {
		Key         string       `json:"active_key"`
		Experiences []Experience `json:"experiences"`
		Summary     *Summary     `json:"summary"`
		Messages    []Message    `json:"messages"`
		Pending     bool         `json:"has_pending_compaction"`
	}{key, append([]Experience{}, p.experiences...), lastSummary(list), append([]Message{}, list...), pending}, nil
}

func (b *Backend) remember(ctx context.Context, c *primitive.Call) (any, error) {
	var a struct{ Text, Key string }
	if err := c.Bind(&a); err != nil {
		return nil, err
	}
	if strings.TrimSpace(a.Text) == "" {
		return nil, bad("ValueError", "there is nothing to remember: the text is blank")
	}
	key, err := b.key(ctx, c, a.Key)
	if err != nil {
		return nil, err
	}
	var e Experience
	err = b.change(ctx, key, func(p *parts) bool {
		n := len(p.experiences)
		e = p.remember(a.Text)
		return len(p.experiences) > n
	})
	return e, err
}

func (b *Backend) forget(ctx context.Context, c *primitive.Call) (any, error) {
	var a struct {
		ID  string `json:"experience_id"`
		Key string `json:"key"`
	}
	if err := c.Bind(&a); err != nil {
		return nil, err
	}
	key, err := b.key(ctx, c, a.Key)
	if err != nil {
		return nil, err
	}
	found := false
	err = b.change(ctx, key, func(p *parts) bool { found = p.forget(a.ID); return found })
	return found, err
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
	if _, err := b.load(ctx, key); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.queued[key] = &compaction{exec: c.Exec, summary: a.Summary, remember: slices.Clone(a.Remember)}
	b.mu.Unlock()
	return map[string]any{"status": "queued", "active_key": key, "summary": a.Summary, "assistant_message": a.Summary.render(), "remember": a.Remember}, nil
}
