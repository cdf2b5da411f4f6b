package selfref

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/messages"
)

// family are the forks of one session at the root, and theirs.
type family struct {
	last  int // the number of the last one
	forks []*fork
}

// add puts a fork in, in the order of their numbers.
func (fam *family) add(f *fork) {
	fam.forks = append(fam.forks, f)
	slices.SortFunc(fam.forks, func(a, b *fork) int { return cmp.Compare(a.n, b.n) })
}

var forkKeys = regexp.MustCompile(`::fork::[0-9]+-[0-9a-f]{12}$`)

// forkKey is a key for the conversation of fork n that was never used: sessions,
// working directories and programs that share a store count for themselves.
func forkKey(source string, n int) string {
	id := messages.NewID()
	return fmt.Sprintf("%s::fork::%d-%s", source, n, id[len(id)-12:])
}

// markKey is the key of an empty conversation that says of another one, which has
// the name that code gave it, that it is a fork's: that is to be known as long as the
// store lasts.
func markKey(key string) string { return key + "::fork::0-000000000000" }

// IsForkKey says that the pack has made this key, for the conversation of a fork:
// <source>::fork::N-ID. It ends with the fork's session; after a program that was
// killed, a host with a store that lasts may delete it. A conversation that code has
// named stays, and so does the mark that it is a fork's: a key with the number 0, which
// has no messages and is deleted with it by whoever deletes it.
func IsForkKey(key string) bool { return forkKeys.MatchString(key) }

// keepLocked keeps the result of a fork that has ended, and drops the oldest ones
// that are too much.
func (b *Backend) keepLocked(f *fork) {
	if f.dropped {
		b.deleteLocked(f)
		return
	}
	b.kept, b.bytes = append(b.kept, f), b.bytes+int64(len(f.answer))
	for b.bytes > b.o.MaxBytes && len(b.kept) > 1 {
		b.dropLocked(b.kept[0])
	}
}

// dropOldLocked drops the oldest results beyond those that a session may have.
func (b *Backend) dropOldLocked(fam *family) {
	over := len(fam.forks) - b.o.MaxKept
	for _, f := range slices.Clone(fam.forks) {
		if over <= 0 {
			return
		}
		if isClosed(f.done) {
			b.dropLocked(f)
			over--
		}
	}
}

// dropLocked forgets a fork: one that runs is cancelled.
func (b *Backend) dropLocked(f *fork) {
	if f.dropped {
		return
	}
	f.dropped = true
	f.family.forks = slices.DeleteFunc(f.family.forks, func(o *fork) bool { return o == f })
	if !isClosed(f.done) {
		f.cancel(errCancelled)
		return // its end deletes the conversation
	}
	b.kept = slices.DeleteFunc(b.kept, func(o *fork) bool { return o == f })
	b.bytes -= int64(len(f.answer))
	b.deleteLocked(f)
}

// deleteLocked deletes the conversation that was made for a fork. Nothing waits for
// the store; what it has not done when the backend closes, that does.
func (b *Backend) deleteLocked(f *fork) {
	if f.named || b.life.Err() != nil {
		return
	}
	b.forks.Go(func() {
		ctx, cancel := context.WithTimeout(b.life, deleteWait)
		defer cancel()
		b.remove(ctx, f.Key)
	})
}

// deleteWait bounds the wait for a store that deletes a conversation.
const deleteWait = 10 * time.Second

func (b *Backend) remove(ctx context.Context, key string) {
	unlock, err := b.lock(ctx, key)
	if err == nil {
		defer unlock()
		err = b.o.Store.Delete(ctx, key)
	}
	if err != nil {
		b.o.Logger.Warn("the conversation of a fork was not deleted", "key", key, "err", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.made, key)
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (b *Backend) cancel(c *primitive.Call) (any, error) {
	b.mu.Lock()
	chosen, err := b.namedLocked(c.Session, c.Args["fork_id"])
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ran := false
	for _, f := range chosen {
		select {
		case <-f.done:
		default:
			ran = true
			f.cancel(errCancelled)
		}
	}
	return ran, nil
}

// cancelOf cancels the forks that a call started.
func (b *Backend) cancelOf(exec string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for f := range b.names {
		if f.exec == exec {
			f.cancel(errCancelled)
		}
	}
}

// drop forgets the results of forks.
func (b *Backend) drop(c *primitive.Call) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	chosen, err := b.namedLocked(c.Session, c.Args["fork_ids"])
	if err != nil {
		return nil, err
	}
	for _, f := range chosen {
		b.dropLocked(f)
	}
	return len(chosen), nil
}

// OnSessionEnd ends the forks of a session: those that run are cancelled, and
// results and conversations are dropped. A session of the same name begins with
// none.
func (b *Backend) OnSessionEnd(key messages.SessionKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fam := b.families[key]
	if fam == nil {
		return
	}
	delete(b.families, key)
	for _, f := range slices.Clone(fam.forks) {
		b.dropLocked(f)
	}
}

// OnClose cancels what runs, waits for it, and deletes the conversations of forks.
func (b *Backend) OnClose() error {
	b.end(errors.New("the host is shutting down"))
	ctx, cancel := context.WithTimeout(context.Background(), b.o.CloseTimeout)
	ended := make(chan struct{})
	go func() { // ends with the last fork
		defer cancel()
		b.forks.Wait()
		b.mu.Lock()
		left := slices.Sorted(maps.Keys(b.made))
		b.mu.Unlock()
		for _, key := range left {
			b.remove(ctx, key)
		}
		close(ended)
	}()
	timer := time.NewTimer(b.o.CloseTimeout)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.names); n > 0 {
		return fmt.Errorf("%d forks have not ended", n)
	}
	return errors.New("the store has not deleted the conversations of forks in time")
}

var (
	_ primitive.CallEnder    = (*Backend)(nil)
	_ primitive.SessionEnder = (*Backend)(nil)
	_ primitive.Closer       = (*Backend)(nil)
)

// chooseLocked finds forks by what code gave: an id, a handle, a list of them, or
// nothing for all that the caller started.
func (b *Backend) chooseLocked(session messages.SessionKey, raw json.RawMessage) ([]*fork, error) {
	ids, all, err := forkIDs(raw)
	if err != nil {
		return nil, err
	}
	root, parent := session, ""
	if o, ok := b.origins[session]; ok {
		root, parent = o.root, o.fork.ID
	}
	var chosen []*fork
	if fam := b.families[root]; fam != nil {
		for _, f := range fam.forks {
			if (all && f.Parent == parent) || slices.ContainsFunc(ids, func(id forkID) bool { return id.means(f) }) {
				chosen = append(chosen, f) // in the order of their numbers
			}
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(chosen, id.means) {
			return nil, bad("KeyError", "there is no fork %s; its result may have been dropped, and ends with its session", id.ID)
		}
	}
	return chosen, nil
}

// namedLocked is chooseLocked where forks must be named.
func (b *Backend) namedLocked(session messages.SessionKey, raw json.RawMessage) ([]*fork, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, bad("TypeError", "say which forks: an id, a handle of spawn, or a list of them")
	}
	return b.chooseLocked(session, raw)
}

// forkID names a fork; a handle has the key of its conversation too, so that one of
// an earlier session of the same name means none of this one.
type forkID struct {
	ID  string `json:"fork_id"`
	Key string `json:"memory_key"`
}

func (id forkID) means(f *fork) bool { return id.ID == f.ID && (id.Key == "" || id.Key == f.Key) }

func forkIDs(raw json.RawMessage) (ids []forkID, all bool, err error) {
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
		var id forkID
		if json.Unmarshal(one, &id.ID) != nil && (json.Unmarshal(one, &id) != nil || id.ID == "") {
			return nil, false, bad("TypeError", "fork_ids are ids or handles of spawn, not %s", one)
		}
		ids = append(ids, id)
	}
	return ids, false, nil
}
