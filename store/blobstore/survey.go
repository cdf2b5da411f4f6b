package blobstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/coppice-run/coppice/store"
)

// entry is what is known of one object of a chain of records. One is never changed: it is
// read once.
type entry struct {
	size    int64
	made    time.Time // when it was written, as the bucket says
	none    bool
	header  store.Header
	parts   []store.Part // without their Data
	refused *store.RefusedError
}

// knownMost is how many bytes of entries are remembered, about; others are read each time.
const knownMost = 16 << 20

// weight is about what an entry takes in memory.
func (e *entry) weight() int64 {
	const least, part = 512, 128
	return least + int64(len(e.header.Manifest)) + part*int64(len(e.parts))
}

// clone returns the header for someone who may change it.
func (e *entry) clone() store.Header {
	h := e.header
	h.Owners, h.Manifest, h.Sections = slices.Clone(h.Owners), slices.Clone(h.Manifest), slices.Clone(h.Sections)
	return h
}

// unseal reads a record that stands at a key.
func (s *Store) unseal(key string, data []byte) (store.Body, error) {
	b, err := store.Unseal(data, s.o.Key)
	if err == nil && b.Place != key {
		err = &store.RefusedError{Reason: store.ReasonName, Problem: "it was copied from where another record stands"}
		if rest, ok := strings.CutPrefix(b.Place, key[:strings.LastIndexByte(key, '/')+1]); ok {
			err = &store.RefusedError{Reason: store.ReasonSeal, Problem: fmt.Sprintf("it is an older one, %s, that was copied to where a newer one stands", rest)}
		}
	}
	return b, err
}

// look returns what an object of a list holds.
func (s *Store) look(ctx context.Context, o *blob.ListObject) (*entry, error) {
	s.mu.Lock()
	e := s.known[o.Key]
	s.mu.Unlock()
	if e != nil && e.size == o.Size && e.made.Equal(o.ModTime) {
		return e, nil
	}
	data, err := s.fetch(ctx, o.Key)
	if err != nil {
		return nil, err
	}
	e = &entry{size: o.Size, made: o.ModTime, none: string(data) == string(none)}
	if !e.none {
		b, err := s.unseal(o.Key, data)
		if err != nil && !errors.As(err, &e.refused) {
			return nil, err
		}
		e.header, e.parts = b.Header, b.Parts
		for i := range e.parts {
			e.parts[i].Data = nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.known[o.Key]; old != nil {
		s.bytes -= old.weight()
		delete(s.known, o.Key)
	}
	if s.bytes+e.weight() <= knownMost {
		s.known[o.Key] = e
		s.bytes += e.weight()
	}
	return e, nil
}

// forget forgets all objects but some.
func (s *Store) forget(but map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.known {
		if !but[key] {
			s.bytes -= e.weight()
			delete(s.known, key)
		}
	}
}

// standing is what a list shows of one chain of records.
type standing struct {
	place   string
	objects []*blob.ListObject // in order; the last counts
	newest  *entry             // of the last
}

// rows are the objects of chains below a folder, by their places.
func (s *Store) rows(ctx context.Context, dir string) ([]standing, error) {
	objects, err := s.list(ctx, dir)
	if err != nil {
		return nil, err
	}
	var all []standing
	for _, o := range objects {
		place, _, ok := strings.Cut(strings.TrimPrefix(o.Key, dir), "/")
		if !ok || number(o.Key) == 0 {
			continue
		}
		if len(all) == 0 || all[len(all)-1].place != place {
			all = append(all, standing{place: place})
		}
		last := &all[len(all)-1]
		last.objects = append(last.objects, o)
	}
	return all, nil
}

// survey looks at all records, those that are not there any more left out.
func (s *Store) survey(ctx context.Context) ([]standing, error) {
	const most = 3 // some may be replaced while they are read
	for i := 1; ; i++ {
		all, err := s.rows(ctx, recordsDir)
		if err != nil {
			return nil, err
		}
		there, again := make(map[string]bool, len(all)), false
		known := all[:0]
		for _, st := range all {
			last := st.objects[len(st.objects)-1]
			st.newest, err = s.look(ctx, last)
			switch {
			case err == nil:
				there[last.Key] = true
				known = append(known, st)
			case gone(err):
				again = true
			default:
				return nil, err
			}
		}
		if !again || i == most {
			s.forget(there)
			return known, nil
		}
	}
}

// List returns the headers of all records. Unlike those of a damaged record, errors of the
// bucket are returned.
func (s *Store) List(ctx context.Context) ([]store.Header, error) {
	all, err := s.survey(ctx)
	if err != nil {
		return nil, fmt.Errorf("list what is kept: %w", err)
	}
	now, list := time.Now(), make([]store.Header, 0, len(all))
	for _, st := range all {
		if e := st.newest; !e.none && e.refused == nil && !e.header.Expired(now) {
			list = append(list, e.clone())
		}
	}
	slices.SortFunc(list, func(a, b store.Header) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
