package selfref

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/messages"
)

// maxGathered is how many bytes of JSON gather_all returns: a host takes 8 MiB.
const maxGathered = 7 << 20

// maxRead is how many characters fork.read returns at once, at most: in JSON one may
// take twelve bytes.
const maxRead = 500_000

// gather waits for forks.
func (b *Backend) gather(ctx context.Context, c *primitive.Call) (any, error) {
	var a struct {
		IDs     json.RawMessage `json:"fork_ids"`
		History bool            `json:"include_history"`
	}
	if err := c.Bind(&a); err != nil {
		return nil, err
	}
	chosen, waits, done, err := b.await(c, a.IDs)
	if err != nil {
		return nil, err
	}
	defer done()
	for _, f := range waits {
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	results := make([]ForkResult, len(chosen))
	for i, f := range chosen {
		b.tell(c, f)
		results[i] = resultOf(f, slices.Contains(waits, f))
	}
	forHistories := 0
	if a.History {
		forHistories = b.room / 8 // long responses leave it to them
	}
	room := fit(results, b.room-forHistories) + forHistories
	for i, f := range chosen {
		b.addHistory(ctx, f, &results[i], a.History, &room)
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, r := range results {
		if i > 0 {
			out.WriteByte(',')
		}
		raw, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%q:%s", r.ID, raw)
	}
	out.WriteByte('}')
	return json.RawMessage(out.Bytes()), nil
}

// await chooses forks, and says which of them can be waited for: not those that
// begin when the call has ended. One that waits for the caller itself is an error:
// neither would end. done is called when the wait is over.
func (b *Backend) await(c *primitive.Call, ids json.RawMessage) (chosen, waits []*fork, done func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if chosen, err = b.chooseLocked(c.Session, ids); err != nil {
		return nil, nil, nil, err
	}
	me := b.origins[c.Session].fork
	for _, f := range chosen {
		switch {
		case me != nil && f == me:
			return nil, nil, nil, bad("ValueError", "%s is the fork that this code belongs to, and cannot wait for its own end", f.ID)
		case me != nil && f.awaitsLocked(me, map[*fork]bool{}):
			return nil, nil, nil, bad("RuntimeError", "%s waits for the fork that this code belongs to: neither would end", f.ID)
		case !f.Live || f.exec != c.Exec:
			waits = append(waits, f)
		}
	}
	if len(chosen) > 0 && len(waits) == 0 {
		return nil, nil, nil, bad("RuntimeError", "%s copies this interpreter when the call has ended; gather it in a later one", chosen[0].ID)
	}
	if me == nil {
		return chosen, waits, func() {}, nil
	}
	if me.waits == nil {
		me.waits = map[*fork]int{}
	}
	for _, f := range waits {
		me.waits[f]++
	}
	return chosen, waits, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range waits {
			if me.waits[f]--; me.waits[f] == 0 {
				delete(me.waits, f)
			}
		}
	}, nil
}

// awaitsLocked says that f waits for another fork, also through others.
func (f *fork) awaitsLocked(other *fork, seen map[*fork]bool) bool {
	if seen[f] || isClosed(f.done) {
		return false
	}
	seen[f] = true
	for next := range f.waits {
		if next == other || next.awaitsLocked(other, seen) {
			return true
		}
	}
	return false
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
	// Note says what is not whole here, and how to get it.
	Note    string    `json:"note,omitempty"`
	History []Message `json:"history,omitempty"`
}

// resultOf is the result of a fork that has ended, or of one that has not begun.
func resultOf(f *fork, ended bool) ForkResult {
	r := ForkResult{Status: statusRunning, ID: f.ID, Depth: f.Depth, Source: f.Source, Key: f.Key}
	if f.Parent != "" {
		r.Parent = &f.Parent
	}
	switch {
	case !ended:
		r.Note = "it copies this interpreter when the call has ended: gather it in a later one"
	case f.err != nil:
		r.Status, r.ErrorType, r.ErrorMessage = statusError, f.err.Type, f.err.Message
	default:
		r.Status, r.Response, r.Result = statusCompleted, f.answer, f.answer
	}
	return r
}

// addHistory adds the conversation of a fork, as far as there is room.
func (b *Backend) addHistory(ctx context.Context, f *fork, r *ForkResult, wanted bool, room *int) {
	list, err := b.o.Store.Load(ctx, f.Key)
	if err != nil {
		return // the host has dropped it
	}
	if r.HistoryCount = len(list); !wanted {
		return
	}
	raw, err := json.Marshal(list)
	if err == nil && len(raw) <= *room {
		*room -= len(raw)
		r.HistoryIncluded, r.History = true, list
		return
	}
	r.note(fmt.Sprintf("the history has %d bytes as JSON and does not fit beside the rest: gather this fork alone, or read it with runtime.selfref.context.inspect(%q)", len(raw), r.Key))
}

func (r *ForkResult) note(text string) {
	if r.Note != "" {
		r.Note += "; "
	}
	r.Note += text
}

// fit makes results fit into one value, and returns the bytes that are left. A
// response is there twice, as result too: where it is long it is there once, or its
// beginning is.
func fit(results []ForkResult, room int) (left int) {
	const slack = 1 << 10 // for each: a note, the names
	room -= len(results) * slack
	sizes := make([]int, len(results))
	total := 0
	for i, r := range results {
		room -= 6 * (len(r.ErrorMessage) + len(r.Source) + len(r.Key))
		sizes[i] = 2 * len(r.Response)
		total += sizes[i]
	}
	share := total
	if total > room {
		share = fairShare(sizes, room)
	}
	for i := range results {
		r := &results[i]
		n := len(r.Response)
		switch {
		case sizes[i] <= share:
			room -= sizes[i]
			continue
		case n <= share:
			r.Result = nil
			r.note(fmt.Sprintf("the response has %d bytes as JSON: it is in response alone, and result is None", n))
		default:
			shown, chars := beginning(r.Response, share)
			r.Response, r.Result = shown, nil
			r.note(fmt.Sprintf("the response has %d bytes as JSON and does not fit: response is the first %d characters of its text, result is None; runtime.selfref.fork.read(%q, %d) goes on from there", n, chars, r.ID, chars))
		}
		room -= len(r.Response)
	}
	return max(room, 0)
}

// fairShare is how much each may take so that all together have room: those that
// need less leave the rest to the others.
func fairShare(sizes []int, room int) int {
	sorted := slices.Sorted(slices.Values(sizes))
	for i, n := range sorted {
		share := max(room, 0) / (len(sorted) - i)
		if n > share {
			return share
		}
		room -= n
	}
	return room
}

// textOf is a response as text: a string itself, any other value as JSON.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// beginning is as much of a response's text as fits into so many bytes of JSON, and
// its characters.
func beginning(raw json.RawMessage, room int) (json.RawMessage, int) {
	text := textOf(raw)
	for n := min(room, len(text)); ; n = n * max(room, 0) / (len(raw) + 1) {
		for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		raw, _ = json.Marshal(text[:n]) // of a string
		if len(raw) <= room || n == 0 {
			return raw, utf8.RuneCountInString(text[:n])
		}
	}
}

// read returns a part of a response's text.
func (b *Backend) read(c *primitive.Call) (any, error) {
	var a struct{ Start, Length *int }
	if err := c.Bind(&a); err != nil {
		return nil, err
	}
	b.mu.Lock()
	chosen, err := b.namedLocked(c.Session, c.Args["fork_id"])
	b.mu.Unlock()
	start, length := 0, maxRead
	if a.Start != nil {
		start = *a.Start
	}
	if a.Length != nil {
		length = min(*a.Length, maxRead)
	}
	switch {
	case err != nil:
		return nil, err
	case len(chosen) != 1:
		return nil, bad("ValueError", "read takes one fork at a time")
	case start < 0 || length < 1:
		return nil, bad("ValueError", "start is 0 or more, and length 1 or more")
	case !isClosed(chosen[0].done):
		return nil, bad("RuntimeError", "%s runs still; gather_all waits for it", chosen[0].ID)
	case chosen[0].err != nil:
		return nil, &messages.HostError{Type: "RuntimeError", Message: chosen[0].ID + " has no response: it failed with " + chosen[0].err.Error()}
	}
	all := []rune(textOf(chosen[0].answer))
	start = min(start, len(all))
	end := min(start+length, len(all))
	part := struct {
		Text  string `json:"text"`
		Next  *int   `json:"next"`
		Total int    `json:"total"`
	}{Text: string(all[start:end]), Total: len(all)}
	if end < len(all) {
		part.Next = &end
	}
	return part, nil
}
