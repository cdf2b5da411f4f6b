package fleettest

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
)

// look is a watch that runs.
type look struct {
	entries chan fleet.Entry
	ended   chan error
	stop    context.CancelFunc
}

func watching(t *testing.T, d fleet.Directory, prefix string) *look {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &look{entries: make(chan fleet.Entry, 1000), ended: make(chan error, 1), stop: stop}
	t.Cleanup(stop)
	go func() {
		l.ended <- d.Watch(ctx, prefix, func(e fleet.Entry) { l.entries <- e })
	}()
	return l
}

// next returns what the watch tells next.
func (l *look) next(t *testing.T) fleet.Entry {
	t.Helper()
	select {
	case e := <-l.entries:
		return e
	case err := <-l.ended:
		require.NoError(t, err, "the watch has ended")
	case <-within(t).Done():
		require.FailNow(t, "the watch tells nothing")
	}
	return fleet.Entry{}
}

// end returns what the watch has ended with.
func (l *look) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-l.ended:
		return err
	case <-within(t).Done():
		return errors.New("the watch goes on")
	}
}

func watches(t *testing.T, open func(*testing.T) fleet.Directory) {
	a, b := open(t), open(t)
	one := mustSwap(t, a, "node.one", "1", "")
	three := mustSwap(t, a, "nodes.three", "3", "")
	mustSwap(t, a, "session.one", "s", "")

	l := watching(t, b, "node.")
	require.Equal(t, fleet.Entry{Key: "node.one", Value: []byte("1"), Rev: one}, l.next(t))
	require.Empty(t, l.next(t).Key, "all that was there has been told")
	mustSwap(t, a, "nodes.three", "4", three)
	two := mustSwap(t, a, "node.two", "2", "")
	require.Equal(t, fleet.Entry{Key: "node.two", Value: []byte("2"), Rev: two}, l.next(t))
	one = mustSwap(t, b, "node.one", "1b", one)
	require.Equal(t, fleet.Entry{Key: "node.one", Value: []byte("1b"), Rev: one}, l.next(t))

	all := watching(t, a, "")
	seen := map[string]string{}
	for e := all.next(t); e.Key != ""; e = all.next(t) {
		seen[e.Key] = string(e.Value)
	}
	require.Equal(t, map[string]string{"node.one": "1b", "node.two": "2", "nodes.three": "4", "session.one": "s"}, seen)
	none := watching(t, a, "none.")
	require.Empty(t, none.next(t).Key, "also when nothing was there")

	l.stop()
	require.ErrorIs(t, l.end(t), context.Canceled)
	require.NoError(t, a.Close())
	require.Error(t, all.end(t), "Close ends a watch")
	require.Error(t, none.end(t))
}

func watchOrder(t *testing.T, open func(*testing.T) fleet.Directory) {
	a, b := open(t), open(t)
	l := watching(t, b, "o.")
	require.Empty(t, l.next(t).Key)
	const last = 50
	var rev fleet.Revision
	for i := range last + 1 {
		rev = mustSwap(t, a, "o.k", strconv.Itoa(i), rev)
	}
	for seen := -1; seen < last; {
		e := l.next(t)
		n, err := strconv.Atoi(string(e.Value))
		require.NoError(t, err)
		require.Greater(t, n, seen)
		if seen = n; seen == last {
			require.Equal(t, rev, e.Rev)
		}
	}
}

func contexts(t *testing.T, open func(*testing.T) fleet.Directory) {
	d := open(t)
	rev := mustSwap(t, d, "c", "1", "")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.Get(ended, "c")
	require.Error(t, err)
	_, err = d.Swap(ended, "c", []byte("2"), "")
	require.Error(t, err)
	require.NotErrorIs(t, err, fleet.ErrConflict, "it was not asked")
	require.Error(t, d.Remove(ended, "c", rev))
	require.ErrorIs(t, d.Watch(ended, "c.", func(fleet.Entry) {}), context.Canceled)
	mustSwap(t, d, "c", "3", rev)
}

func closes(t *testing.T, open func(*testing.T) fleet.Directory) {
	a, b := open(t), open(t)
	rev := mustSwap(t, a, "c", "1", "")
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	_, err := a.Get(within(t), "c")
	require.ErrorIs(t, err, fleet.ErrClosed)
	_, err = a.Swap(within(t), "c", []byte("2"), rev)
	require.ErrorIs(t, err, fleet.ErrClosed)
	require.ErrorIs(t, a.Remove(within(t), "c", rev), fleet.ErrClosed)
	require.ErrorIs(t, a.Watch(within(t), "", func(fleet.Entry) {}), fleet.ErrClosed)
	mustSwap(t, b, "c", "2", rev)
}

// members is the protocol over the directory, as far as it needs no time.
func members(t *testing.T, open func(*testing.T) fleet.Directory) {
	ctx := within(t)
	join := func(name string, strict bool) *fleet.Member {
		m, err := fleet.Join(ctx, fleet.Options{Directory: open(t), Name: name, URL: "http://" + name, TTL: Patience, Strict: strict})
		require.NoError(t, err)
		t.Cleanup(func() { _ = m.Leave(context.WithoutCancel(ctx)) })
		return m
	}
	a, b := join("a", false), join("b", true)
	roster := fleet.NewRoster(open(t), nil)
	defer roster.Close()
	require.Eventually(t, func() bool {
		nodes, err := roster.List(ctx)
		return err == nil && len(nodes) == 2 && nodes[0].ID == a.ID() && nodes[1].ID == b.ID()
	}, Patience, time.Millisecond)

	run := func(o *fleet.Ownership, id string) {
		turn, err := o.Begin(ctx, fleet.Call{ID: id, Epoch: o.Epoch()})
		require.NoError(t, err)
		require.NoError(t, turn.Answer(ctx))
		_, err = o.Begin(ctx, fleet.Call{ID: id})
		require.ErrorIs(t, err, fleet.ErrBegun)
	}
	first, err := a.Claim(ctx, "a key / of any letters")
	require.NoError(t, err)
	run(first, "1")
	// A read may be stale, and say that the key is nobody's: the swap finds it out.
	_, err = b.Claim(ctx, "a key / of any letters")
	var owned *fleet.OwnedError
	require.ErrorAs(t, err, &owned)
	require.Equal(t, fleet.OwnedError{Key: "a key / of any letters", Epoch: 1, Node: a.ID()}, *owned)

	require.NoError(t, first.Release(ctx))
	second := claimed(t, b, "a key / of any letters")
	require.EqualValues(t, 2, second.Epoch())
	run(second, "2")
	run(second, "3")
	require.NoError(t, b.Leave(ctx))
	third := claimed(t, a, "a key / of any letters")
	require.EqualValues(t, 3, third.Epoch())
	_, err = third.Begin(ctx, fleet.Call{Epoch: 2})
	var other *fleet.EpochError
	require.ErrorAs(t, err, &other)
}

// claimed claims a key that is free as soon as the reads say so.
func claimed(t *testing.T, m *fleet.Member, key string) *fleet.Ownership {
	t.Helper()
	var o *fleet.Ownership
	require.Eventually(t, func() bool {
		var err error
		o, err = m.Claim(t.Context(), key)
		return err == nil
	}, Patience, time.Millisecond)
	return o
}
