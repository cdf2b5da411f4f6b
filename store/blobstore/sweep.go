package blobstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/coppice-run/coppice/store"
)

// sweepSometimes sweeps when that was not done for a while. What fails is tried again by the
// next one: a record is not refused for it.
func (s *Store) sweepSometimes(ctx context.Context) {
	s.mu.Lock()
	due := time.Since(s.swept) > sweepEvery
	s.mu.Unlock()
	if due {
		_ = s.sweep(ctx)
	}
}

// sweep drops what has expired or was replaced, and what nobody has needed for a while. Any
// number of hosts may do it at once.
func (s *Store) sweep(ctx context.Context) error {
	began := time.Now()
	s.mu.Lock()
	s.swept = began // by one call at a time
	s.mu.Unlock()
	now, err := s.now(ctx)
	if err != nil {
		return fmt.Errorf("sweep the store: %w", err)
	}
	old := func(made time.Time) bool { return now.Sub(made) >= s.grace }
	// In this order: who writes a record first says on what it will rely, then looks what is
	// there and what is doomed, and writes the record before it takes that back.
	copies, err := s.list(ctx, s.copiesDir())
	if err != nil {
		return fmt.Errorf("sweep the store: %w", err)
	}
	doomed, err := s.doomed(ctx)
	if err != nil {
		return fmt.Errorf("sweep the store: %w", err)
	}
	needed, err := s.intended(ctx, old)
	if err != nil {
		return fmt.Errorf("sweep the store: %w", err)
	}
	all, err := s.survey(ctx)
	if err != nil {
		return fmt.Errorf("sweep the store: %w", err)
	}
	foreign := false
	for _, st := range all {
		e, c := st.newest, s.records(st.place)
		last := number(st.objects[len(st.objects)-1].Key)
		switch {
		case e.refused != nil: // it stays, and what it replaced
			foreign = foreign || e.refused.Reason == store.ReasonForm
		case e.none:
			c.clean(ctx, last)
			if len(st.objects) == 1 && old(e.made) && s.late(began) == nil {
				err = errors.Join(err, s.remove(ctx, c.key(last)))
			}
		case e.header.Expired(time.Now()):
			if n, added := c.add(ctx, last, func(uint64) ([]byte, error) { return none, nil }); added != nil {
				err = errors.Join(err, added)
			} else {
				c.clean(ctx, n)
			}
		case len(st.objects) > 1:
			c.clean(ctx, last)
		}
		for _, p := range e.parts {
			needed[p.Sum+"/"+p.At] = true
		}
	}
	if !foreign { // else there may be records of this key that need what this program does not know of
		err = errors.Join(err, s.sweepBuffers(ctx, copies, needed, doomed, old, began))
	}
	if err = errors.Join(err, s.sweepLeases(ctx, old, began)); err != nil {
		return fmt.Errorf("sweep the store: %w", err)
	}
	return nil
}

// doomed are the buffers that no record may begin to rely on, by SUM/AT, since when.
func (s *Store) doomed(ctx context.Context) (map[string]time.Time, error) {
	prefix := s.doomedDir()
	marks, err := s.list(ctx, prefix)
	all := make(map[string]time.Time, len(marks))
	for _, o := range marks {
		all[strings.TrimPrefix(o.Key, prefix)] = o.ModTime
	}
	return all, err
}

// intended are the sums that somebody is about to rely on. What programs have left that were
// killed is dropped: nobody writes a record for so long.
func (s *Store) intended(ctx context.Context, old func(time.Time) bool) (map[string]bool, error) {
	intents, err := s.list(ctx, s.intentsDir())
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, o := range intents {
		if !strings.HasPrefix(o.Key, s.intentsDir()+intentMark) {
			continue
		}
		if s.grace > 0 && old(o.ModTime) {
			if err := s.remove(ctx, o.Key); err != nil {
				return nil, err
			}
			continue
		}
		text, err := s.fetch(ctx, o.Key)
		if gone(err) { // its record is there by now
			continue
		}
		if err != nil {
			return nil, err
		}
		var sums []string
		if err := json.Unmarshal(text, &sums); err != nil {
			return nil, fmt.Errorf("read %s: %w", o.Key, err)
		}
		for _, sum := range sums {
			all[sum] = true
		}
	}
	return all, nil
}

// sweepBuffers dooms buffers that no record needs, and drops those that were doomed long ago
// and are needed by none since: whoever relied on one before is to be seen by now.
func (s *Store) sweepBuffers(ctx context.Context, copies []*blob.ListObject, needed map[string]bool, doomed map[string]time.Time, old func(time.Time) bool, began time.Time) error {
	var err error
	there := make(map[string]bool, len(copies))
	for _, o := range copies {
		at := strings.TrimPrefix(o.Key, s.copiesDir())
		there[at] = true
		sum, copied, _ := strings.Cut(at, "/")
		if needed[at] || needed[sum] {
			continue
		}
		since, is := doomed[at]
		switch {
		case !is:
			_, err = s.create(ctx, s.doomKey(sum, copied), []byte("doomed"))
		case old(since) && s.late(began) == nil:
			if err = s.remove(ctx, o.Key); err == nil {
				err = s.remove(ctx, s.doomKey(sum, copied))
			}
		}
		if err != nil {
			return err
		}
	}
	for at, since := range doomed { // a sweep that was killed has left them
		sum, copied, _ := strings.Cut(at, "/")
		if !there[at] && old(since) {
			if err := s.remove(ctx, s.doomKey(sum, copied)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepLeases drops those that have ended, or were abandoned, long ago.
func (s *Store) sweepLeases(ctx context.Context, old func(time.Time) bool, began time.Time) error {
	rows, err := s.rows(ctx, openDir)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !old(row.objects[len(row.objects)-1].ModTime) {
			continue
		}
		for _, o := range row.objects {
			if err := errors.Join(s.late(began), s.remove(ctx, o.Key)); err != nil {
				return err
			}
		}
	}
	return nil
}
