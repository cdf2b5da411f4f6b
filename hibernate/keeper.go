package hibernate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// Policy says which sessions are kept on disk.
type Policy string

// The policies.
const (
	// Never keeps none: a session that has no kernel any more is gone.
	Never Policy = "never"
	// Lossless keeps those of which every name comes back. One that would lose
	// something goes on while there is room for it.
	Lossless Policy = "lossless"
	// Lossy keeps what can be kept of each, and says what is lost.
	Lossy Policy = "lossy"
)

// Report says what was written down of a session.
type Report = messages.Hibernated

// Options make a [Keeper].
type Options struct {
	// Store is where sessions are kept. Required.
	Store store.Store
	// Policy is Lossless or Lossy. Required.
	Policy Policy
	// Scratch is a folder for what is being written and read, a file for each session
	// that is; it is made when it is not there. Required.
	Scratch string
	// MaxSaved is how many checkpoints there may be in the store: one more is refused. Hosts
	// that share a store each count all of them. 0: 1000; negative: any number.
	MaxSaved int
	// SavedAge is how long a checkpoint is kept after it was saved. 0: 90 days; negative: until
	// it is dropped.
	SavedAge time.Duration
	// Logger hears of what could not be dropped, and of sessions that could not be kept. nil: it
	// is not logged.
	Logger *slog.Logger
}

// Keeper keeps the sessions of one host. Any goroutine may call its methods.
type Keeper struct {
	o Options

	mu       sync.Mutex
	sessions map[string]*session // guarded by mu: those that something is done with
	closed   bool                // guarded by mu
	// ready are the checkpoints that sessions may begin with, by their ids, and beginning
	// those with which the next kernels of sessions do; guarded by mu.
	ready     map[string]*Ready
	beginning map[string]*Ready
	// saving are the checkpoints that are being made and are not in the store yet, by their
	// ids; guarded by mu. They are counted by one at a time, who has a token in counting.
	saving   map[string]bool
	counting chan struct{}

	// ending says that the host ends, and unkept has what is lost with it; guarded by mu.
	ending bool
	unkept []messages.Unkept

	forgetting sync.WaitGroup
	life       context.Context //nolint:containedctx // that of the goroutines, from New to Close
	end        context.CancelFunc
}

// session is one session that something is done with.
type session struct {
	turn chan struct{} // holds a token while it is written, read or dropped
	// The others are guarded by the Keeper's mu. users wait for the turn or have it;
	// edition counts how often the session was forgotten; dropping says that it was,
	// and that what is kept is still there.
	users    int
	edition  int
	dropping bool
}

// New returns a Keeper.
func New(o Options) (*Keeper, error) {
	if o.Store == nil || o.Policy != Lossless && o.Policy != Lossy {
		return nil, errors.New("keep sessions on disk: it takes a store, and the policy lossless or lossy")
	}
	if o.MaxSaved == 0 {
		o.MaxSaved = UsualSaved
	}
	if o.SavedAge == 0 {
		o.SavedAge = UsualSavedAge
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(o.Scratch, 0o700); err != nil {
		return nil, fmt.Errorf("keep sessions on disk: %w", err)
	}
	k := &Keeper{o: o, sessions: map[string]*session{}, ready: map[string]*Ready{}, beginning: map[string]*Ready{}, saving: map[string]bool{}, counting: make(chan struct{}, 1)}
	k.life, k.end = context.WithCancel(context.Background())
	return k, nil
}

// Close waits until what was forgotten is dropped. Sleep and Wake may be called
// afterwards; Forget does its work before it returns then.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.forgetting.Wait()
	k.end()
	k.giveUp()
}

// enter notes that something is to be done with a session.
func (k *Keeper) enter(id string) *session {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[id]
	if s == nil {
		s = &session{turn: make(chan struct{}, 1)}
		k.sessions[id] = s
	}
	s.users++
	return s
}

// leave ends that.
func (k *Keeper) leave(id string, s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.users--; s.users == 0 && !s.dropping {
		delete(k.sessions, id)
	}
}

// turn waits until nothing else is done with a session, and drops what is kept of it when
// it was forgotten. done has to be called when there is no error.
func (k *Keeper) turn(ctx context.Context, id string) (s *session, done func(), err error) {
	s = k.enter(id)
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		k.leave(id, s)
		return nil, nil, fmt.Errorf("wait for what is kept of the session: %w", context.Cause(ctx))
	}
	done = func() {
		<-s.turn
		k.leave(id, s)
	}
	k.mu.Lock()
	dropping := s.dropping
	k.mu.Unlock()
	if dropping {
		if err := k.o.Store.Delete(ctx, id); err != nil {
			done()
			return nil, nil, fmt.Errorf("drop what is kept of the session: %w", err)
		}
		k.mu.Lock()
		s.dropping = false
		k.mu.Unlock()
	}
	return s, done, nil
}

// Forget drops what is kept of a session.
func (k *Keeper) Forget(key messages.SessionKey) {
	id := key.ID()
	s := k.enter(id)
	k.mu.Lock()
	s.dropping, s.edition = true, s.edition+1
	k.withdraw(k.beginning[id])
	closed := k.closed
	if !closed {
		k.forgetting.Add(1)
	}
	k.mu.Unlock()
	drop := func() {
		defer k.leave(id, s)
		_, done, err := k.turn(k.life, id)
		if err != nil {
			k.o.Logger.Warn("what is kept of a session was not dropped; it is before it can be restored", "session", id, "err", err)
			return
		}
		done()
	}
	if closed {
		drop()
		return
	}
	go func() {
		defer k.forgetting.Done()
		drop()
	}()
}

// Unkept logs that a session was not written down that should have been. One that goes on because
// something of it would be lost is as it should be: that is what the policy is for.
func (k *Keeper) Unkept(key messages.SessionKey, over bool, why error) {
	problem := why.Error()
	refused, is := errors.AsType[*messages.HibernateRefused](why)
	if is {
		problem = refused.Problem
	}
	about := []any{"session", key.Session, "cwd", key.Cwd, "err", problem}
	if key.Workspace != "" {
		about = append(about, "workspace", key.Workspace)
	}
	switch {
	case over:
		k.mu.Lock()
		if k.ending {
			k.unkept = append(k.unkept, messages.Unkept{Key: key, Problem: problem})
		}
		k.mu.Unlock()
		k.o.Logger.Warn("a session has ended and is not kept on disk: what it had in memory is lost", about...)
	case !is || refused.Reason == messages.HibernateFailed:
		k.o.Logger.Warn("an idle session could not be kept on disk, and goes on", about...)
	}
}

// Ending says that the host ends: from now on [Keeper.Lost] has the sessions that were not kept.
// Of earlier ones their next calls have heard, or will.
func (k *Keeper) Ending() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ending = true
}

// Lost returns the sessions that the end of the host has ended without their being kept.
func (k *Keeper) Lost() []messages.Unkept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.unkept)
}

// ForgetWorkspace drops what is kept of all sessions of a workspace, with their checkpoints.
func (k *Keeper) ForgetWorkspace(name string) {
	k.forgetAll(func(within string) bool { return within == name })
}

// Release drops what is kept of sessions that have no owner besides one who leaves, with
// such checkpoints, and returns when it is gone. Those of others, too, are no longer that one's.
func (k *Keeper) Release(ctx context.Context, owner string) error {
	list, err := k.o.Store.List(ctx)
	for _, h := range list {
		key, ok := messages.ParseSessionKey(h.Name)
		saved, is := messages.ParseCheckpointKey(h.Name)
		switch {
		case !ok && !is || owner == "" || !slices.Contains(h.Owners, owner):
		case len(named(h.Owners)) > 1:
			err = errors.Join(err, k.disown(ctx, h.Name, owner))
		case is:
			err = errors.Join(err, k.dropSaved(ctx, saved))
		default:
			err = errors.Join(err, k.Drop(ctx, key))
		}
	}
	return err
}

// disown takes one of several owners out of a record.
func (k *Keeper) disown(ctx context.Context, id, owner string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("take an owner out of what is kept as %s: %w", id, err)
		}
	}()
	_, done, err := k.turn(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	record, err := k.o.Store.Get(ctx, id, store.Claim{Owner: owner})
	if errors.Is(err, store.ErrNone) || errors.Is(err, store.ErrBusy) { // a kernel has it, and the gateway knows whose it is
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, record.Close()) }() // no one restores it meanwhile
	h := record.Header()
	h.Owners = slices.DeleteFunc(slices.Clone(h.Owners), func(o string) bool { return o == owner })
	if len(named(h.Owners)) == 0 {
		return k.o.Store.Delete(ctx, id)
	}
	f, err := k.scratch()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := record.Image(ctx, f); err != nil {
		return err
	}
	return k.o.Store.Put(ctx, h, f)
}

// named are owners without the one that stands for calls without an owner.
func named(owners []string) []string {
	return slices.DeleteFunc(slices.Clone(owners), func(o string) bool { return o == "" })
}

// Drop drops what is kept of a session, and returns when it is gone.
func (k *Keeper) Drop(ctx context.Context, key messages.SessionKey) error {
	id := key.ID()
	s := k.enter(id)
	defer k.leave(id, s)
	k.mu.Lock()
	s.dropping, s.edition = true, s.edition+1
	k.withdraw(k.beginning[id])
	k.mu.Unlock()
	_, done, err := k.turn(ctx, id)
	if err == nil {
		done()
	}
	return err
}

// forgetAll forgets the sessions and checkpoints of workspaces that match, in a goroutine.
func (k *Keeper) forgetAll(match func(workspace string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	k.forgetting.Go(func() {
		list, err := k.o.Store.List(k.life)
		if err != nil {
			k.o.Logger.Warn("the sessions that are kept could not be listed", "err", err)
		}
		for _, h := range list {
			var err error
			if key, ok := messages.ParseSessionKey(h.Name); ok && match(key.Workspace) {
				err = k.Drop(k.life, key)
			} else if saved, ok := messages.ParseCheckpointKey(h.Name); ok && match(saved.Workspace) {
				err = k.dropSaved(k.life, saved)
			}
			if err != nil {
				k.o.Logger.Warn("what is kept of a session was not dropped", "session", h.Name, "err", err)
			}
		}
	})
}

// Asleep is a session that is kept on disk.
type Asleep struct {
	Key messages.SessionKey `json:"key"`
	// Owners may have it; Open says that everyone may, since it has served a call without
	// an owner.
	Owners []string `json:"owners,omitempty"`
	Open   bool     `json:"open,omitempty"`
	// Made is when it was written, Expires until when it is kept; zero: for ever.
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires,omitzero"`
	// Bytes is how much it is.
	Bytes  int64  `json:"bytes"`
	Python string `json:"python"`
	// Memory is what will be there.
	Memory messages.Memory `json:"memory"`
}

// List returns the sessions that are kept, by name.
func (k *Keeper) List(ctx context.Context) ([]Asleep, error) {
	headers, err := k.o.Store.List(ctx)
	if err != nil {
		return nil, err
	}
	var list []Asleep
	for _, h := range headers {
		key, ok := messages.ParseSessionKey(h.Name)
		var c content
		if ok && json.Unmarshal(h.Manifest, &c) == nil {
			memory, _ := c.memory()
			list = append(list, Asleep{Key: key, Owners: named(h.Owners), Open: len(h.Owners) == 0 || slices.Contains(h.Owners, ""), Made: h.Made, Expires: h.Expires, Bytes: h.Size(), Python: h.Python, Memory: memory})
		}
	}
	return list, nil
}

// platform is the kind of this machine.
func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

var _ kernel.Hibernation = (*Keeper)(nil)
