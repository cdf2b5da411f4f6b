package fleet_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
)

// stub is a store whose every answer a test gives.
type stub struct {
	get   func(ctx context.Context) error
	swap  func(ctx context.Context) error
	watch func(ctx context.Context, f func(fleet.Entry)) error
	ends  int
}

func (s *stub) Get(ctx context.Context, key string) (fleet.Entry, error) {
	return fleet.Entry{Key: key, Rev: "1"}, s.get(ctx)
}

func (s *stub) Swap(ctx context.Context, _ string, _ []byte, _ fleet.Revision) (fleet.Revision, error) {
	return "2", s.swap(ctx)
}

func (s *stub) Remove(ctx context.Context, _ string, _ fleet.Revision) error { return s.swap(ctx) }

func (s *stub) Watch(ctx context.Context, _ string, f func(fleet.Entry)) error {
	return s.watch(ctx, f)
}

func (s *stub) Close() error {
	s.ends++
	return errors.New("it ends badly")
}

// TestGuard: what a directory makes of the answers of its store.
func TestGuard(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	s := &stub{
		get:  func(context.Context) error { return broken },
		swap: func(context.Context) error { return fleet.ErrConflict },
	}
	d := fleet.Guard(s)
	ctx, cancel := context.WithCancel(t.Context())
	e, err := d.Get(ctx, "a.b")
	require.EqualError(t, err, "get a.b: broken")
	require.ErrorIs(t, err, broken)
	require.Zero(t, e)
	rev, err := d.Swap(ctx, "a.b", nil, "7")
	require.ErrorIs(t, err, fleet.ErrConflict)
	require.Empty(t, rev)
	require.NoError(t, d.Remove(ctx, "a.b", ""), "no entry has that revision: the store is not asked")
	require.ErrorContains(t, d.Remove(ctx, "a.b", "7"), "remove a.b: ")

	s.watch = func(context.Context, func(fleet.Entry)) error { return broken }
	require.EqualError(t, d.Watch(ctx, "a.", nil), `watch "a.": broken`)
	s.watch = func(context.Context, func(fleet.Entry)) error { return nil }
	require.ErrorContains(t, d.Watch(ctx, "a.", nil), `watch "a.": `)
	require.NotErrorIs(t, d.Watch(ctx, "a.", nil), broken)

	// The end of a caller's context is told beside what the store says of it, and does not
	// make a conflict uncertain.
	s.get = func(context.Context) error { cancel(); return broken }
	_, err = d.Get(ctx, "a.b")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, broken)
	ctx, cancel = context.WithCancel(t.Context())
	s.swap = func(context.Context) error { cancel(); return fleet.ErrConflict }
	_, err = d.Swap(ctx, "a.b", nil, "7")
	require.ErrorIs(t, err, fleet.ErrConflict)
	require.NotErrorIs(t, err, context.Canceled)
}

// TestGuardEnds: Close ends what waits for the store, and nothing is told after it.
func TestGuardEnds(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	s := &stub{get: func(ctx context.Context) error {
		close(entered)
		<-ctx.Done()
		return errors.New("given up")
	}}
	d := fleet.Guard(s)
	s.watch = func(_ context.Context, f func(fleet.Entry)) error {
		f(fleet.Entry{Key: "one"})
		return nil
	}
	told := 0
	err := d.Watch(t.Context(), "", func(fleet.Entry) { told++ })
	require.Error(t, err, "a watch that ends says so")
	require.Equal(t, 1, told)

	ended := make(chan error)
	go func() { // ends with Close
		_, err := d.Get(t.Context(), "a")
		ended <- err
	}()
	<-entered
	s.watch = func(ctx context.Context, f func(fleet.Entry)) error {
		require.EqualError(t, d.Close(), "it ends badly")
		<-ctx.Done()
		f(fleet.Entry{Key: "late"})
		return errors.New("given up")
	}
	require.ErrorIs(t, d.Watch(t.Context(), "", func(fleet.Entry) { told++ }), fleet.ErrClosed)
	require.Equal(t, 1, told)
	require.ErrorIs(t, <-ended, fleet.ErrClosed)
	require.NoError(t, d.Close(), "a second time it does nothing")
	require.Equal(t, 1, s.ends)
}
