package selfref

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/messages"
)

// gather waits for forks.
func (b *Backend) gather(ctx context.Context, c *primitive.Call) (any, error) {
	var a struct {
		IDs     json.RawMessage `json:"fork_ids"`
		History bool            `json:"include_history"`
	}
	if err := c.Bind(&a); err != nil {
		return nil, err
	}
	chosen, err := b.choose(c.Session, a.IDs)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for _, f := range chosen {
		if f.Live && f.exec == c.Exec {
			return nil, bad("RuntimeError", "%s copies this interpreter when the call has ended; gather it in a later one", f.ID)
		}
	}
	for i, f := range chosen {
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		b.tell(c, f)
		if i > 0 {
			out.WriteByte(',')
		}
		raw, err := json.Marshal(b.result(ctx, f, a.History))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%q:%s", f.ID, raw)
	}
	out.WriteByte('}')
	return json.RawMessage(out.Bytes()), nil
}

// ForkResult is the end of a fork as gather_all returns it.
type ForkResult struct {
	Status          string          `json:"status"`
	ID              string          `json:"fork_id"`
	Parent          *string         `json:"parent_fork_id"`
	Depth           int             `json:"depth"`
	Source          string          `json:"source_memory_key"`
	Key             string          `json:"memory_key"`
	Response        json.RawMessage `json:"response"`
	Result          json.RawMessage `json:"result"`
	HistoryCount    int             `json:"history_count"`
	HistoryIncluded bool            `json:"history_included"`
	ErrorType       string          `json:"error_type,omitempty"`
	ErrorMessage    string          `json:"error_message,omitempty"`
	History         []Message       `json:"history,omitempty"`
}

func (b *Backend) result(ctx context.Context, f *fork, history bool) ForkResult {
	r := ForkResult{Status: statusCompleted, ID: f.ID, Depth: f.Depth, Source: f.Source, Key: f.Key, HistoryIncluded: history, Response: f.answer, Result: f.answer}
	if f.Parent != "" {
		r.Parent = &f.Parent
	}
	if f.err != nil {
		r.Status, r.ErrorType, r.ErrorMessage = statusError, f.err.Type, f.err.Message
		r.Response, r.Result = nil, nil
	}
	list, err := b.o.Store.Load(ctx, f.Key)
	if err != nil {
		return r // the host has dropped it
	}
	r.HistoryCount = len(list)
	if history {
		r.History = list
	}
	return r
}

// choose finds forks by what code gave: an id, a handle, a list of them, or
// nothing for all that the caller started.
func (b *Backend) choose(session messages.SessionKey, raw json.RawMessage) ([]*fork, error) {
	ids, all, err := forkIDs(raw)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	root, parent := session, ""
	if o, ok := b.origins[session]; ok {
		root, parent = o.root, o.id
	}
	var chosen []*fork
	if fam := b.families[root]; fam != nil {
		for _, f := range fam.forks {
			if (all && f.Parent == parent) || slices.Contains(ids, f.ID) {
				chosen = append(chosen, f) // in the order of their numbers
			}
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(chosen, func(f *fork) bool { return f.ID == id }) {
			return nil, bad("KeyError", "there is no fork %s", id)
		}
	}
	return chosen, nil
}

func forkIDs(raw json.RawMessage) (ids []string, all bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true, nil
	}
	list := []json.RawMessage{raw}
	if raw[0] == '[' {
		list = nil
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, false, bad("TypeError", "fork_ids cannot be read")
		}
	}
	for _, one := range list {
		var id string
		var handle struct {
			ID string `json:"fork_id"`
		}
		if json.Unmarshal(one, &id) != nil && (json.Unmarshal(one, &handle) != nil || handle.ID == "") {
			return nil, false, bad("TypeError", "fork_ids are ids or handles of spawn, not %s", one)
		}
		if id == "" {
			id = handle.ID
		}
		ids = append(ids, id)
	}
	return ids, false, nil
}
