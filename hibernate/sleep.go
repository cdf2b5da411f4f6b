package hibernate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// content is what a record says of its image.
type content struct {
	// Image is what the interpreter says of it.
	Image messages.RawJSON `json:"image"`
	// Unread is what another interpreter could not read, and Earlier what the session
	// had lost before and was never told of.
	Unread  []messages.LostName `json:"unread,omitempty"`
	Earlier *messages.Restored  `json:"earlier,omitempty"`
	// Notes say what whoever restores it is to be told besides, a clause each.
	Notes []string `json:"notes,omitempty"`
}

// image is what of an image's description is of use here.
type image struct {
	messages.Memory
	Sections []int64 `json:"sections"`
}

// memory is what becomes of each name.
func (c content) memory() (messages.Memory, error) {
	var i image
	if err := json.Unmarshal(c.Image, &i); err != nil {
		return messages.Memory{}, fmt.Errorf("read what a session holds: %w", err)
	}
	m := i.Memory
	m.Lost = append(m.Lost, c.Unread...)
	if e := c.Earlier; e != nil {
		m.Lost = append(m.Lost, e.Lost...)
		for _, changed := range e.Changed {
			again := slices.ContainsFunc(m.Changed, func(n messages.ChangedName) bool { return n.Name == changed.Name })
			if at := slices.Index(m.Kept, changed.Name); at >= 0 && !again {
				m.Kept, m.Changed = slices.Delete(slices.Clone(m.Kept), at, at+1), append(m.Changed, changed)
			}
		}
	}
	slices.SortFunc(m.Lost, func(a, b messages.LostName) int { return strings.Compare(a.Name, b.Name) })
	return m, nil
}

// Sleep writes down what a session has.
func (k *Keeper) Sleep(ctx context.Context, s kernel.Sleeper) (messages.Hibernated, error) {
	began, id := time.Now(), s.Key.ID()
	one, done, err := k.turn(ctx, id)
	if err != nil {
		return messages.Hibernated{}, failed(err)
	}
	defer done()
	edition := k.edition(one)
	kept, err := k.keep(ctx, s, k.o.Policy, store.Header{Name: id, Made: began})
	if err != nil {
		return messages.Hibernated{}, failed(err)
	}
	if k.edition(one) != edition { // it was forgotten meanwhile
		err := k.o.Store.Delete(context.WithoutCancel(ctx), id)
		return messages.Hibernated{}, failed(errors.Join(errors.New("the session was reset or closed meanwhile"), err))
	}
	return kept, nil
}

// keep writes down what a session has, as a record of which h has the name, when that began,
// and until when it is kept.
func (k *Keeper) keep(ctx context.Context, s kernel.Sleeper, p Policy, h store.Header) (messages.Hibernated, error) {
	var ends sync.WaitGroup // of processes that are not needed any more: they end while the record is put away
	defer ends.Wait()
	f, c, err := k.write(ctx, s, p, &ends)
	if err != nil {
		return messages.Hibernated{}, err
	}
	defer func() { _ = f.Close() }() // it has no name: its end is that of its bytes
	memory, err := c.memory()
	if err != nil {
		return messages.Hibernated{}, err
	}
	full, err := header(s, c, h)
	if err == nil {
		err = k.o.Store.Put(ctx, full, f)
	}
	return messages.Hibernated{Memory: memory, Bytes: full.Size(), Took: time.Since(h.Made)}, err
}

func (k *Keeper) edition(s *session) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return s.edition
}

// header completes what a record of a session says.
func header(s kernel.Sleeper, c content, h store.Header) (store.Header, error) {
	var i image
	if err := json.Unmarshal(c.Image, &i); err != nil {
		return h, fmt.Errorf("read what the session holds: %w", err)
	}
	manifest, err := json.Marshal(c)
	if err != nil {
		return h, fmt.Errorf("write what the session holds: %w", err)
	}
	h.Session, h.Owners, h.Manifest, h.Sections = s.Key.ID(), s.Owners, manifest, i.Sections
	h.Python, h.Platform = s.Interpreter.Info().Python, platform()
	return h, nil
}

// write has a copy of the session write itself to a file, and another interpreter read
// it. What that cannot read is left out. Where nothing may be lost, the first that would be
// ends it: what is known before anything is written, before it is read, and then. The
// processes that it needed end in ends.
func (k *Keeper) write(ctx context.Context, s kernel.Sleeper, p Policy, ends *sync.WaitGroup) (_ *os.File, c content, err error) {
	freezer, ok := s.Interpreter.(kernel.Freezer)
	if !ok {
		return nil, c, &messages.HibernateRefused{Reason: messages.HibernateUnsupported, Problem: "kernels of this kind cannot be kept on disk; use a session of Python"}
	}
	if c.Earlier = s.Earlier; c.Earlier != nil {
		if err := p.allow(c.Earlier.Lost); err != nil {
			return nil, c, err
		}
	}
	frozen, err := freezer.Freeze(ctx)
	if err != nil {
		return nil, c, err
	}
	// One that does not end at once is seen to by itself: the record is as true without it.
	defer ends.Go(func() { _ = frozen.Close(context.WithoutCancel(ctx)) })
	f, err := k.scratch()
	if err != nil {
		return nil, c, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if c.Image, err = frozen.Write(ctx, f, kernel.Writing{Whole: p == Lossless}); err != nil {
		return f, c, k.unwritten(err)
	}
	memory, err := c.memory()
	if err == nil {
		err = p.allow(memory.Lost)
	}
	if err != nil {
		return f, c, err
	}
	bad, err := k.try(ctx, s, f, c.Image, ends)
	if err == nil && len(bad) == 0 {
		return f, c, nil
	}
	if c.Unread, err = k.unread(ctx, s, frozen, errors.Join(err), ends); err != nil {
		return f, c, err
	}
	names := make([]string, len(c.Unread))
	for i, one := range c.Unread {
		names[i] = one.Name
		c.Unread[i].Name = strings.TrimPrefix(one.Name, "around ")
	}
	if err := p.allow(c.Unread); err != nil {
		return f, c, err
	}
	if c.Image, err = frozen.Write(ctx, f, kernel.Writing{Without: names}); err != nil {
		return f, c, k.unwritten(err)
	}
	if bad, err = k.try(ctx, s, f, c.Image, ends); err == nil && len(bad) > 0 {
		err = fmt.Errorf("%s cannot be read again: %s", bad[0].Name, bad[0].Reason)
	}
	return f, c, err
}

// allow returns why a session is not kept that would lose something; nil when it may.
func (p Policy) allow(lost []messages.LostName) error {
	if p != Lossless || len(lost) == 0 {
		return nil
	}
	return lossy(lost)
}

// unread finds out which names another interpreter cannot read.
func (k *Keeper) unread(ctx context.Context, s kernel.Sleeper, frozen kernel.Frozen, whole error, ends *sync.WaitGroup) ([]messages.LostName, error) {
	if refused, ok := errors.AsType[*messages.HibernateRefused](whole); whole != nil && (!ok || refused.Reason != messages.HibernateFailed) {
		return nil, whole
	}
	f, err := k.scratch()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	apart, err := frozen.Write(ctx, f, kernel.Writing{Apart: true})
	if err != nil {
		return nil, k.unwritten(err)
	}
	bad, err := k.try(ctx, s, f, apart, ends)
	if err == nil && len(bad) == 0 {
		err = errors.Join(errors.New("each name can be read again, and all of them together cannot"), whole)
	}
	return bad, err
}

// try has another interpreter read an image, and returns what it could not read.
func (k *Keeper) try(ctx context.Context, s kernel.Sleeper, f *os.File, image messages.RawJSON, ends *sync.WaitGroup) (bad []messages.LostName, err error) {
	err = k.another(ctx, s, ends, func(_ kernel.Interpreter, thawer kernel.Freezer) error {
		thawed, err := thawer.Thaw(ctx, f, image)
		bad = thawed.Failed
		return err
	})
	return bad, err
}

// another starts an interpreter for a trial, which ends after it, in ends.
func (k *Keeper) another(ctx context.Context, s kernel.Sleeper, ends *sync.WaitGroup, trial func(kernel.Interpreter, kernel.Freezer) error) error {
	key := s.Key
	key.Session += " (read again)" // no copy waits under that name
	other, err := s.Backend.Start(ctx, kernel.StartOptions{Key: key, Env: s.Env, Once: true})
	if err != nil {
		return fmt.Errorf("start an interpreter that reads what was written: %w", err)
	}
	defer ends.Go(func() { _ = other.Close(context.WithoutCancel(ctx)) }) // it goes on trying
	thawer, ok := other.(kernel.Freezer)
	if !ok {
		return errors.New("the second interpreter is of another kind")
	}
	return trial(other, thawer)
}

// scratch makes a file that has no name, where the system can do that.
func (k *Keeper) scratch() (*os.File, error) {
	f, err := os.CreateTemp(k.o.Scratch, "session-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // where it is open it cannot be removed: it is with the folder
	return f, nil
}

// unwritten is why an image could not be written: with the folder, which the interpreter does not
// know, and in which there may be no room.
func (k *Keeper) unwritten(err error) error {
	refused, ok := errors.AsType[*messages.HibernateRefused](err)
	if !ok {
		return fmt.Errorf("write it to a file in %s: %w", k.o.Scratch, err)
	}
	if refused.Reason != messages.HibernateFailed {
		return err
	}
	said := *refused
	said.Problem = fmt.Sprintf("it could not be written to a file in %s: %s", k.o.Scratch, refused.Problem)
	return &said
}

// Wake puts what is kept of a session into an interpreter.
func (k *Keeper) Wake(ctx context.Context, key messages.SessionKey, owner string, into kernel.Interpreter) (kernel.Woken, error) {
	id := key.ID()
	_, done, err := k.turn(ctx, id)
	if err != nil {
		return kernel.Woken{}, err
	}
	defer done()
	if r := k.take(id); r != nil {
		return k.begin(ctx, r, key, into)
	}
	record, err := k.o.Store.Get(ctx, id, store.Claim{Owner: owner, Python: into.Info().Python, Platform: platform()})
	if errors.Is(err, store.ErrNone) {
		return kernel.Woken{}, nil // most sessions were never kept
	}
	if err != nil {
		return kernel.Woken{}, err
	}
	owners := record.Header().Owners
	restored, err := k.restore(ctx, record, into)
	if err == nil {
		// It is the interpreter's now, also when this host is killed. If it stayed, it could be
		// restored once more.
		kernel.Outlive(ctx, into, owners, &kernel.News{Restored: restored})
		err = k.o.Store.Delete(ctx, id)
	}
	if err = errors.Join(err, record.Close()); err != nil {
		return kernel.Woken{}, err
	}
	return kernel.Woken{Restored: restored, Owners: owners}, nil
}

// restore reads a record into an interpreter.
func (k *Keeper) restore(ctx context.Context, r store.Record, into kernel.Interpreter) (*messages.Restored, error) {
	f, err := k.scratch()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if err := r.Image(ctx, f); err != nil {
		return nil, err
	}
	return thaw(ctx, r.Header(), f, into)
}

// thaw has an interpreter take over what a file holds, of which h is the header.
func thaw(ctx context.Context, h store.Header, f *os.File, into kernel.Interpreter) (*messages.Restored, error) {
	thawer, ok := into.(kernel.Freezer)
	if !ok {
		return nil, errors.New("it was kept by another backend")
	}
	var c content
	if err := json.Unmarshal(h.Manifest, &c); err != nil {
		return nil, fmt.Errorf("read what is kept: %w", err)
	}
	memory, err := c.memory()
	if err != nil {
		return nil, err
	}
	thawed, err := thawer.Thaw(ctx, f, c.Image)
	if refused, ok := errors.AsType[*messages.HibernateRefused](err); ok {
		// It says that a session was not hibernated, and this one was: it is not restored.
		return nil, errors.New(refused.Problem)
	}
	if err != nil {
		return nil, err
	}
	if len(thawed.Failed) > 0 {
		return nil, fmt.Errorf("%s could not be read: %s", thawed.Failed[0].Name, thawed.Failed[0].Reason)
	}
	restored := &messages.Restored{Memory: memory, At: h.Made, Notes: append(slices.Clone(c.Notes), thawed.Said...)}
	if c.Earlier != nil {
		restored.Notes = append(slices.Clone(c.Earlier.Notes), restored.Notes...)
	}
	return restored, nil
}

// failed is why a session is not kept.
func failed(err error) error {
	if refused, ok := errors.AsType[*messages.HibernateRefused](err); ok {
		return refused
	}
	return &messages.HibernateRefused{Reason: messages.HibernateFailed, Problem: err.Error()}
}

// lossy is why a session is not kept that would lose something.
func lossy(lost []messages.LostName) error {
	shown := lost[:min(len(lost), 5)]
	parts := make([]string, len(shown))
	for i, l := range shown {
		parts[i] = fmt.Sprintf("%s (%s: %s)", l.Name, l.Type, l.Reason)
	}
	more := ""
	if n := len(lost) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return &messages.HibernateRefused{Reason: messages.HibernateLossy, Problem: "it would lose " + strings.Join(parts, ", ") + more + "; delete them, or allow it with the policy lossy", Lost: lost}
}
