package selfref

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Message is one entry of a conversation.
type Message struct {
	// Role is system, user, assistant, tool or function.
	Role    string `json:"role"`
	Content string `json:"content"`
	// ToolCalls are what an assistant message asks for.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// ToolCallID is the call that a tool message answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
	Name       string `json:"name,omitempty"`
}

// ToolCall is one call that a model made.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// ErrNoConversation is matched when a store has nothing under a key.
var ErrNoConversation = errors.New("there is no conversation with that key")

// Store holds conversations. Its methods may be called from any goroutine; the
// pack makes one change at a time for each key. What it returns and is given is
// not changed afterwards. A method that hangs holds up the code that asked, until
// its cell ends, and no result of a call.
type Store interface {
	// Load returns a conversation; the error matches ErrNoConversation when it does not
	// exist.
	Load(ctx context.Context, key string) ([]Message, error)
	// Save replaces a conversation, or makes it.
	Save(ctx context.Context, key string, messages []Message) error
	// Keys returns all keys, sorted.
	Keys(ctx context.Context) ([]string, error)
	// Delete removes a conversation. That there is none is no error. The pack
	// deletes those that it has made for forks, see [IsForkKey], and no others.
	Delete(ctx context.Context, key string) error
}

// Memory is a Store that forgets everything at the end of the program. The zero
// value is empty and ready.
type Memory struct {
	mu  sync.Mutex
	all map[string][]Message // guarded by mu
}

// Load returns a copy.
func (m *Memory) Load(_ context.Context, key string) ([]Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, ok := m.all[key]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrNoConversation, key)
	}
	return slices.Clone(list), nil
}

// Save keeps a copy.
func (m *Memory) Save(_ context.Context, key string, list []Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string][]Message{}
	}
	m.all[key] = append([]Message{}, list...)
	return nil
}

// Keys returns the keys.
func (m *Memory) Keys(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.all)), nil
}

// Delete removes a conversation.
func (m *Memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
	return nil
}

// Check says what is wrong with a conversation: a role that does not exist, or a
// tool message that answers no call.
func Check(list []Message) error {
	pending := map[string]bool{}
	for i, m := range list {
		switch m.Role {
		case "system", "user", "function":
		case "assistant":
			clear(pending)
			for _, c := range m.ToolCalls {
				pending[c.ID] = true
			}
		case "tool":
			if !pending[m.ToolCallID] {
				return fmt.Errorf("message %d answers the tool call %q, which was not made or is answered already", i, m.ToolCallID)
			}
			delete(pending, m.ToolCallID)
		default:
			return fmt.Errorf("message %d has the role %q; a role is system, user, assistant, tool or function", i, m.Role)
		}
	}
	return nil
}

// Snapshot is a conversation for a fork: a last assistant message whose calls
// are not all answered is cut off with the answers that it has, so that the fork
// does not see the call that started it.
func Snapshot(list []Message) []Message {
	for i, m := range slices.Backward(list) {
		switch m.Role {
		case "tool":
			continue
		case "assistant":
			if len(m.ToolCalls) > len(list)-1-i {
				return slices.Clone(list[:i])
			}
		}
		break
	}
	return slices.Clone(list)
}

var _ Store = (*Memory)(nil)
