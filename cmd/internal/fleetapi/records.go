package fleetapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// Records is where the sessions of a node are kept on disk: a [store.Store] for its host. What
// other nodes may own next, and checkpoints, are in a store that all of them share, and what stays
// with the node in one of its own. Any goroutine may call its methods.
//
// A record in the shared store has a name that is used once: the epoch of who wrote it, a
// number, and the session. The session's claim says which of them counts. So whoever is no
// longer the owner can neither have one nor replace the one that counts, whenever it comes.
type Records struct {
	shared, own store.Store
	node        atomic.Pointer[Node]
	written     atomic.Uint64

	mu sync.Mutex
	// open are the records of sessions that are being restored here; guarded by mu.
	open map[string]*restoring
	// counted are names of records that a claim has named; guarded by mu.
	counted map[string]bool
}

// NewRecords makes the records of a node. Sessions are kept by it once it is in [Options].
func NewRecords(shared, own store.Store) *Records {
	return &Records{shared: shared, own: own, open: map[string]*restoring{}, counted: map[string]bool{}}
}

// keptFor is how long a session is kept, and its name is remembered for it, if the record does
// not say.
const keptFor = 30 * 24 * time.Hour

// errNotOwner: what is not this node's is neither kept nor restored by it.
var errNotOwner = errors.New("this node does not own the session any more; its next call is for the node that does")

// moves reports whether a record is of a session that another node may own next.
func moves(name string) bool {
	key, ok := messages.ParseSessionKey(name)
	return ok && key.Workspace == ""
}

// isCheckpoint reports whether a record is of a checkpoint that all nodes have: one of a workspace
// stays with that.
func isCheckpoint(name string) bool {
	key, ok := messages.ParseCheckpointKey(name)
	return ok && key.Workspace == ""
}

// at is the store that has what no claim names.
func (r *Records) at(name string) store.Store {
	if isCheckpoint(name) {
		return r.shared
	}
	return r.own
}

// recordPrefix is what names of records in the shared store begin with.
const recordPrefix = "fleet/"

// recordName is the name of a record in the shared store.
func recordName(mark, name string) string { return recordPrefix + mark + "/" + name }

// parseRecord is the other direction. The epoch is that of who has written it.
func parseRecord(text string) (epoch uint64, mark, name string, ok bool) {
	rest, ok := strings.CutPrefix(text, recordPrefix)
	mark, name, whole := strings.Cut(rest, "/")
	number, _, _ := strings.Cut(mark, ".")
	epoch, err := strconv.ParseUint(number, 10, 64)
	return epoch, mark, name, ok && whole && err == nil && moves(name)
}

// claimed is the ownership of a session, with its node; nil: it is not this one's.
func (r *Records) claimed(name string) (*Node, *fleet.Ownership) {
	n := r.node.Load()
	if n == nil {
		return nil, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.keys[name]; e != nil && n.member != nil {
		return n, e.own
	}
	return n, nil
}

// Put implements [store.Store].
func (r *Records) Put(ctx context.Context, h store.Header, image io.ReaderAt) error {
	if !moves(h.Name) {
		return r.at(h.Name).Put(ctx, h, image)
	}
	n, own := r.claimed(h.Name)
	if own == nil {
		return fmt.Errorf("keep %s: %w", h.Name, errNotOwner)
	}
	if h.Expires.IsZero() {
		h.Expires = h.Made.Add(keptFor)
	}
	before, name := own.Kept(), h.Name
	mark := fmt.Sprintf("%d.%d", own.Epoch(), r.written.Add(1))
	h.Name = recordName(mark, name)
	if err := r.shared.Put(ctx, h, image); err != nil {
		return err
	}
	said, cancel := context.WithTimeout(ctx, n.o.TTL/2)
	defer cancel()
	if err := own.Keep(said, mark, h.Expires); err != nil {
		return fmt.Errorf("keep %s: %w", name, err) // the record stays: it may be the one that counts
	}
	if before != "" {
		r.remove(ctx, n, before, name)
	}
	return nil
}

// remove drops a record that does not count any more. One that stays expires.
func (r *Records) remove(ctx context.Context, n *Node, mark, name string) {
	r.mu.Lock()
	delete(r.counted, recordName(mark, name))
	r.mu.Unlock()
	if err := r.shared.Delete(ctx, recordName(mark, name)); err != nil {
		n.o.Logger.Warn("a record of a session that does not count any more was not dropped", "session", name, "error", err)
	}
}

// Get implements [store.Store].
func (r *Records) Get(ctx context.Context, name string, c store.Claim) (store.Record, error) {
	if !moves(name) {
		return r.notOpen(ctx, name, c)
	}
	_, own := r.claimed(name)
	if own == nil {
		return nil, errNotOwner
	}
	mark := own.Kept()
	if mark == "" {
		return nil, store.ErrNone
	}
	record, err := r.shared.Get(ctx, recordName(mark, name), c)
	if errors.Is(err, store.ErrNone) {
		return nil, errors.New("its record is not in the store that the nodes share")
	}
	if err != nil {
		return nil, err
	}
	one := &restoring{Record: record, r: r, name: name, mark: mark, own: own}
	r.mu.Lock()
	r.open[name] = one
	r.mu.Unlock()
	return one, nil
}

// notOpen reads what no claim names. A checkpoint that another node has open, which it reads into a
// file and closes, is waited for.
func (r *Records) notOpen(ctx context.Context, name string, c store.Claim) (store.Record, error) {
	for wait := firstPause; ; {
		record, err := r.at(name).Get(ctx, name, c)
		if !errors.Is(err, store.ErrBusy) || !isCheckpoint(name) || !pause.Wait(ctx, &wait) {
			return record, err
		}
	}
}

// restoring is a record that is open.
type restoring struct {
	store.Record
	r          *Records
	name, mark string
	own        *fleet.Ownership
}

// Header implements [store.Record].
func (o *restoring) Header() store.Header {
	h := o.Record.Header()
	h.Name = o.name
	return h
}

// Close implements [store.Record].
func (o *restoring) Close() error {
	o.r.mu.Lock()
	if o.r.open[o.name] == o {
		delete(o.r.open, o.name)
	}
	o.r.mu.Unlock()
	return o.Record.Close()
}

// Delete implements [store.Store]. Of a record that is open it says that the session has it
// again: whoever is not its owner any more learns so, and must not use what they have read.
// Of others it says that nothing is kept, which is settled before anything else of the session
// is answered.
func (r *Records) Delete(ctx context.Context, name string) error {
	if !moves(name) {
		return r.at(name).Delete(ctx, name)
	}
	r.mu.Lock()
	one := r.open[name]
	r.mu.Unlock()
	n, own := r.claimed(name)
	if n == nil {
		return nil // it is in no fleet yet, and has restored nothing
	}
	ctx, cancel := context.WithTimeout(ctx, n.o.TTL/2)
	defer cancel()
	if one != nil {
		if err := one.own.Take(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.remove(ctx, n, one.mark, name)
		return nil
	}
	if own != nil { // else it is another one's
		r.drop(ctx, n, name, own)
	}
	return nil
}

// drop has nothing be kept of a session.
func (r *Records) drop(ctx context.Context, n *Node, name string, own *fleet.Ownership) {
	mark := own.Kept()
	n.mu.Lock()
	if e := n.keys[name]; e != nil {
		e.dropped = own
	}
	n.mu.Unlock()
	if err := own.Drop(ctx); err != nil {
		n.o.Logger.Info("it is not acknowledged yet that nothing is kept of a session", "session", name, "error", err)
		return
	}
	if mark != "" {
		r.remove(ctx, n, mark, name)
	}
}

// List implements [store.Store]: what stays with this node, and what all nodes share. Records
// that their claims do not name are left out, and dropped where they never will be.
func (r *Records) List(ctx context.Context) ([]store.Header, error) {
	here, err := r.own.List(ctx)
	if err != nil {
		return nil, err
	}
	all, err := r.shared.List(ctx)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(here), func(h store.Header) bool { return moves(h.Name) || isCheckpoint(h.Name) })
	seen := map[string]bool{}
	for _, h := range all {
		if isCheckpoint(h.Name) {
			list = append(list, h)
		} else if _, _, name, ok := parseRecord(h.Name); ok {
			seen[h.Name] = true
			if r.counts(ctx, h.Name) {
				h.Name = name
				list = append(list, h)
			}
		}
	}
	r.mu.Lock()
	for name := range r.counted {
		if !seen[name] {
			delete(r.counted, name)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(list, func(a, b store.Header) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// counts reports whether a record is named by its claim. One that was is dropped when it is
// not any more, so that it need not be asked again; and while the directory cannot be asked, a
// record counts.
func (r *Records) counts(ctx context.Context, record string) bool {
	r.mu.Lock()
	known := r.counted[record]
	r.mu.Unlock()
	n := r.node.Load()
	if known || n == nil {
		return known
	}
	m, _ := n.now()
	if m == nil || m.Check() != nil {
		return true
	}
	epoch, mark, name, _ := parseRecord(record)
	asking, cancel := context.WithTimeout(ctx, n.o.TTL/2)
	defer cancel()
	c, found, err := m.Look(asking, name)
	switch {
	case err != nil:
		return true
	case found && c.Kept == mark:
		r.mu.Lock()
		r.counted[record] = true
		r.mu.Unlock()
		return true
	case found && c.Node == "" && c.Epoch >= epoch: // who wrote it has ended, and later ones go by what this claim says
		r.remove(ctx, n, mark, name)
	}
	return false
}

var _ store.Store = (*Records)(nil)
