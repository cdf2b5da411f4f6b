package selfref

import (
	"context"
	"strings"

	"github.com/coppice-run/coppice/agent/primitive"
)

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
			BestPractices: []string{"Say everything that whoever goes on must know; the other messages go.", "The result of the call says so if the summary could not be saved."},
			NextSteps:     []string{"End the cell: the summary takes effect then."},
			Handler:       func(ctx context.Context, c *primitive.Call) (any, error) { return b.compact(ctx, c) },
		},
	}
}

var practices = []string{
	"Inspect before you change anything.", "Remember facts, not plans: what is remembered outlives a reset of the interpreter.", "Compact when a piece of work is done, not in the middle of it.",
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
	pending := false
	for at := range b.queued {
		pending = pending || at.key == key
	}
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
