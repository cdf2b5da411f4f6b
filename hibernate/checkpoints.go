package hibernate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// Saved is a checkpoint that is kept on disk.
type Saved struct {
	Key messages.CheckpointKey `json:"key"`
	// Session is whose state it is.
	Session messages.SessionKey `json:"session"`
	// Owners may have it; Open says that everyone may, since the session had served a call
	// without an owner.
	Owners []string `json:"owners,omitempty"`
	Open   bool     `json:"open,omitempty"`
	// Made is when it was written, Expires until when it is kept; zero: until it is dropped.
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires,omitzero"`
	// Bytes is how much it is.
	Bytes  int64  `json:"bytes"`
	Python string `json:"python"`
	// Memory is what will be there.
	Memory messages.Memory `json:"memory"`
}

// Save writes down what a session has, under a name. The session goes on.
func (k *Keeper) Save(ctx context.Context, s kernel.Sleeper, m messages.SaveCheckpoint) (messages.Hibernated, error) {
	began, id := time.Now(), m.Checkpoint.ID()
	_, done, err := k.turn(ctx, id)
	if err != nil {
		return messages.Hibernated{}, failed(err)
	}
	defer done()
	admitted, err := k.admit(ctx, m)
	if err != nil {
		return messages.Hibernated{}, failed(err)
	}
	defer admitted()
	kept, err := k.keep(ctx, s, k.policy(m), store.Header{Name: id, Made: began, Expires: k.until(began)})
	if err != nil {
		return messages.Hibernated{}, failed(err)
	}
	return kept, nil
}

// SaveAsleep makes a checkpoint of a session that is kept on disk and has no kernel. The
// error is a [*messages.HibernateRefused].
func (k *Keeper) SaveAsleep(ctx context.Context, m messages.SaveCheckpoint) (messages.Hibernated, error) {
	began := time.Now()
	_, done, err := k.turn(ctx, m.Checkpoint.ID())
	if err != nil {
		return messages.Hibernated{}, failed(err)
	}
	defer done()
	admitted, err := k.admit(ctx, m)
	if err != nil {
		return messages.Hibernated{}, failed(err)
	}
	defer admitted()
	kept, err := k.copyAsleep(ctx, m)
	if errors.Is(err, store.ErrNone) {
		return kept, &messages.HibernateRefused{Reason: messages.HibernateNoKernel, Problem: "it has no kernel, and is not on disk; run a cell first"}
	}
	if err != nil {
		return kept, failed(err)
	}
	kept.Took = time.Since(began)
	return kept, nil
}

// copyAsleep copies the record of a session. The turn of the checkpoint is the caller's.
func (k *Keeper) copyAsleep(ctx context.Context, m messages.SaveCheckpoint) (kept messages.Hibernated, err error) {
	f, err := k.scratch()
	if err != nil {
		return kept, err
	}
	defer func() { _ = f.Close() }()
	h, err := k.Snapshots().read(ctx, m.Key.ID(), f)
	if err != nil {
		return kept, err
	}
	var c content
	if err := json.Unmarshal(h.Manifest, &c); err != nil {
		return kept, fmt.Errorf("read what is kept: %w", err)
	}
	if kept.Memory, err = c.memory(); err != nil {
		return kept, err
	}
	if err := k.policy(m).allow(kept.Lost); err != nil {
		return kept, err
	}
	h.Name, h.Expires, kept.Bytes = m.Checkpoint.ID(), k.until(time.Now()), h.Size()
	return kept, k.o.Store.Put(ctx, h, f)
}

// policy is whether a checkpoint may be without something.
func (k *Keeper) policy(m messages.SaveCheckpoint) Policy {
	if m.Lossy {
		return Lossy
	}
	return k.o.Policy
}

// free refuses to make a checkpoint in place of one that is there, unless that is meant and
// is its owner's to say. It reports whether there is one.
func (k *Keeper) free(ctx context.Context, m messages.SaveCheckpoint) (bool, error) {
	there, err := k.has(ctx, m.Checkpoint.ID(), m.Owner)
	switch refused, is := errors.AsType[*store.RefusedError](err); {
	case is:
		return true, &messages.HibernateRefused{Reason: messages.HibernateOwner, Problem: "there is one of that name, and " + refused.Problem + "; choose another name"}
	case err != nil:
		return false, err
	case there && !m.Replace:
		return true, &messages.HibernateRefused{Reason: messages.HibernateExists, Problem: "there is one of that name; drop it, choose another name, or replace it"}
	}
	return there, nil
}

// has reports whether there is a record of a name, also one that cannot be read. The error is
// a [*store.RefusedError] when the owner who asks may not have it.
func (k *Keeper) has(ctx context.Context, id, owner string) (bool, error) {
	record, err := k.o.Store.Get(ctx, id, store.Claim{Owner: owner})
	if err == nil {
		return true, record.Close()
	}
	refused, is := errors.AsType[*store.RefusedError](err)
	switch {
	case errors.Is(err, store.ErrNone):
		return false, nil
	case is && refused.Reason == store.ReasonOwner && owner != "":
		return true, err
	case is, errors.Is(err, store.ErrBusy):
		return true, nil
	}
	return false, err
}

// Checkpoints returns those that are kept, by workspace and name. Those whose records cannot
// be read are left out.
func (k *Keeper) Checkpoints(ctx context.Context) ([]Saved, error) {
	headers, err := k.o.Store.List(ctx)
	if err != nil {
		return nil, err
	}
	var list []Saved
	for _, h := range headers {
		key, ok := messages.ParseCheckpointKey(h.Name)
		session, of := messages.ParseSessionKey(h.Session)
		var c content
		if ok && of && json.Unmarshal(h.Manifest, &c) == nil {
			memory, _ := c.memory()
			list = append(list, Saved{Key: key, Session: session, Owners: named(h.Owners), Open: len(h.Owners) == 0 || slices.Contains(h.Owners, ""), Made: h.Made, Expires: told(h.Expires), Bytes: h.Size(), Python: h.Python, Memory: memory})
		}
	}
	return list, nil
}

// DropCheckpoint drops a checkpoint, also one that cannot be read, for an owner; "": for no
// one in particular, who may drop any. The error matches [store.ErrNone] when there is none of
// that name, and is a [*store.RefusedError] when it is another owner's.
func (k *Keeper) DropCheckpoint(ctx context.Context, key messages.CheckpointKey, owner string) error {
	_, done, err := k.turn(ctx, key.ID())
	if err != nil {
		return err
	}
	defer done()
	there, err := k.has(ctx, key.ID(), owner)
	if err == nil && !there {
		err = store.ErrNone
	}
	if err == nil {
		err = k.o.Store.Delete(ctx, key.ID())
	}
	if err != nil {
		return fmt.Errorf("drop the checkpoint %s: %w", key, err)
	}
	return nil
}

// dropSaved drops one whose owner or workspace has ended.
func (k *Keeper) dropSaved(ctx context.Context, key messages.CheckpointKey) error {
	if err := k.DropCheckpoint(ctx, key, ""); err != nil && !errors.Is(err, store.ErrNone) {
		return err
	}
	return nil
}

// Ready is a checkpoint that a session may begin with: an interpreter has read it. It is
// guarded by its Keeper.
type Ready struct {
	k       *Keeper
	id      string
	session string // of which session's next kernel; "": of none yet
	header  store.Header
	file    *os.File // the image
	using   bool     // an interpreter reads it
	over    bool     // it is of no use any more: closed, or as soon as no one reads it
	was     *messages.Restored
}

// ID is what [Keeper.Begin] knows it by.
func (r *Ready) ID() string { return r.id }

// Restored is what an interpreter took over of it; nil: none did.
func (r *Ready) Restored() *messages.Restored {
	r.k.mu.Lock()
	defer r.k.mu.Unlock()
	return r.was
}

// Close gives it up, unless a kernel has begun with it. A second call does nothing.
func (r *Ready) Close() {
	r.k.mu.Lock()
	defer r.k.mu.Unlock()
	r.k.withdraw(r)
}

// Leave gives it up, unless the session's next kernel begins with it.
func (r *Ready) Leave() {
	r.k.mu.Lock()
	defer r.k.mu.Unlock()
	if r.session == "" {
		r.k.withdraw(r)
	}
}

// Prepare reads a checkpoint for an owner, and has an interpreter of the session s try it,
// so that a restore which would fail does so before anything has ended. Whoever calls it
// closes what is returned. The error is a [*messages.RestoreRefused].
func (k *Keeper) Prepare(ctx context.Context, key messages.CheckpointKey, owner string, s kernel.Sleeper) (_ *Ready, err error) {
	r := &Ready{k: k, id: messages.NewID()}
	if r.file, err = k.scratch(); err != nil {
		return nil, NotRestored(key.Name, err)
	}
	defer func() {
		if err != nil {
			_ = r.file.Close()
		}
	}()
	claim := store.Claim{Owner: owner, Platform: platform()}
	if r.header, err = k.copyTo(ctx, key.ID(), claim, r.file); err != nil {
		return nil, k.notThere(key.Name, err)
	}
	var ends sync.WaitGroup
	err = k.another(ctx, s, &ends, func(other kernel.Interpreter, _ kernel.Freezer) error {
		claim.Python = other.Info().Python
		if err := r.header.Admit(key.ID(), claim); err != nil {
			return err
		}
		_, err := thaw(ctx, r.header, r.file, other)
		return err
	})
	ends.Wait()
	if err != nil {
		return nil, NotRestored(key.Name, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready[r.id] = r
	return r, nil
}

// copyTo reads a record into a file.
func (k *Keeper) copyTo(ctx context.Context, id string, c store.Claim, f *os.File) (h store.Header, err error) {
	_, done, err := k.turn(ctx, id)
	if err != nil {
		return h, err
	}
	defer done()
	record, err := k.o.Store.Get(ctx, id, c)
	if err != nil {
		return h, err
	}
	err = record.Image(ctx, f)
	return record.Header(), errors.Join(err, record.Close())
}

// Begin has the next kernel of a session begin with what [Keeper.Prepare] has made ready.
// False: it was given up. It returns at once. What is kept of the session itself stays until
// then.
func (k *Keeper) Begin(key messages.SessionKey, ready string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.ready[ready]
	if r == nil {
		return false
	}
	k.withdraw(k.beginning[key.ID()])
	r.session = key.ID()
	k.beginning[r.session] = r
	return true
}

// take returns what a session begins with, for an interpreter that reads it; nil for nothing.
func (k *Keeper) take(session string) *Ready {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.beginning[session]
	if r != nil {
		r.using = true
	}
	return r
}

// begin puts what was made ready into an interpreter. The session's turn is the caller's.
func (k *Keeper) begin(ctx context.Context, r *Ready, key messages.SessionKey, into kernel.Interpreter) (kernel.Woken, error) {
	restored, err := thaw(ctx, r.header, r.file, into)
	if err == nil {
		err = k.o.Store.Delete(ctx, key.ID()) // what the session had before
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r.using = false
	if r.over { // the session was reset meanwhile, or who wanted it has left
		_ = r.file.Close()
	}
	if err != nil {
		return kernel.Woken{}, err
	}
	if from, ok := messages.ParseSessionKey(r.header.Session); ok && from.Cwd != key.Cwd {
		restored.Notes = append(restored.Notes, fmt.Sprintf("it was kept in %s and is now in %s: paths that variables hold are as they were", from.Cwd, key.Cwd))
	}
	r.was = restored
	k.withdraw(r)
	return kernel.Woken{Restored: restored, Owners: slices.Clone(r.header.Owners)}, nil
}

// withdraw gives up what was made ready; nil is nothing. The lock is the caller's.
func (k *Keeper) withdraw(r *Ready) {
	if r == nil || r.over {
		return
	}
	r.over = true
	delete(k.ready, r.id)
	if k.beginning[r.session] == r {
		delete(k.beginning, r.session)
	}
	if !r.using {
		_ = r.file.Close() // it has no name: its end is that of its bytes
	}
}

// giveUp withdraws all that was made ready.
func (k *Keeper) giveUp() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.ready {
		k.withdraw(r)
	}
}

// NotRestored is why a checkpoint was not restored.
func NotRestored(name string, err error) error {
	n := &messages.RestoreRefused{Checkpoint: name, Reason: messages.RestoreFailed, Problem: err.Error(), Err: err}
	if already, ok := errors.AsType[*messages.RestoreRefused](err); ok {
		n.Reason, n.Problem, n.Ended = already.Reason, already.Problem, already.Ended
		return n
	}
	if refused, ok := errors.AsType[*store.RefusedError](err); ok {
		n.Problem, n.Reason = refused.Problem, messages.RestoreBroken
		switch refused.Reason {
		case store.ReasonOwner:
			n.Reason = messages.RestoreOwner
		case store.ReasonPython:
			n.Reason = messages.RestorePython
		case store.ReasonPlatform:
			n.Reason = messages.RestorePlatform
		}
		return n
	}
	if expired, ok := errors.AsType[*store.ExpiredError](err); ok {
		n.Reason = messages.RestoreUnknown
		n.Problem = expired.Error() + "; save it again, or have checkpoints kept for longer (SavedCheckpointAge, serve --keep-checkpoints-for)"
		return n
	}
	switch refused, is := errors.AsType[*messages.HibernateRefused](err); {
	case errors.Is(err, store.ErrNone):
		n.Reason, n.Problem = messages.RestoreUnknown, "there is none of that name"
	case errors.Is(err, store.ErrBusy):
		n.Reason, n.Problem = messages.RestoreBusy, "another host has it open; try again"
	case is && refused.Reason == messages.HibernateUnsupported:
		n.Reason, n.Problem = messages.RestoreUnsupported, refused.Problem
	case is:
		n.Problem = refused.Problem
	}
	return n
}
