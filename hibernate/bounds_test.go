package hibernate_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// bounded makes a Keeper on a folder below dir that allows so many checkpoints, each for so
// long.
func bounded(t *testing.T, dir string, most int, age time.Duration) *hibernate.Keeper {
	t.Helper()
	s, err := store.OpenFolder(t.Context(), store.FolderOptions{Dir: filepath.Join(dir, "kept"), KeyFile: filepath.Join(dir, "key")})
	require.NoError(t, err)
	k, err := hibernate.New(hibernate.Options{Store: s, Policy: hibernate.Lossy, Scratch: filepath.Join(dir, "scratch"), MaxSaved: most, SavedAge: age})
	require.NoError(t, err)
	return k
}

// TestTheNumberOfCheckpoints is bounded: one more is refused, and none is dropped for it.
func TestTheNumberOfCheckpoints(t *testing.T) {
	t.Parallel()
	k := bounded(t, t.TempDir(), 2, 0)
	defer k.Close()
	ctx := t.Context()
	_, err := k.Sleep(ctx, sleeper(newFake("text"), "asleep"))
	require.NoError(t, err, "a session on disk is no checkpoint")
	for _, name := range []string{"x", "y"} {
		_, err := k.Save(ctx, sleeper(newFake(name), "a"), saving("a", name))
		require.NoError(t, err)
	}
	_, err = k.Save(ctx, sleeper(newFake("z"), "a"), saving("a", "z"))
	notSaved(t, err, messages.HibernateFull)
	require.ErrorContains(t, err, "there are 2 checkpoints, as many as this host keeps; drop one that is not needed, replace one, or have it keep more")
	_, err = k.SaveAsleep(ctx, saving("asleep", "z"))
	notSaved(t, err, messages.HibernateFull)
	again := saving("a", "x")
	again.Replace = true
	_, err = k.Save(ctx, sleeper(newFake("new"), "a"), again)
	require.NoError(t, err, "there are no more of them afterwards")
	require.NoError(t, k.DropCheckpoint(ctx, messages.CheckpointKey{Name: "y"}, ""))
	_, err = k.SaveAsleep(ctx, saving("asleep", "z"))
	require.NoError(t, err)
	into, _ := begun(t, k, "x", "b", "")
	require.Equal(t, "new", into.text)
}

// TestManyThatSaveAtOnce make as many as there may be together, and not one more.
func TestManyThatSaveAtOnce(t *testing.T) {
	t.Parallel()
	const most = 5
	k := bounded(t, t.TempDir(), most, 0)
	defer k.Close()
	var saved, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 4 * most {
		wg.Go(func() {
			_, err := k.Save(context.Background(), sleeper(newFake("x"), fmt.Sprint(i)), saving(fmt.Sprint(i), fmt.Sprint(i)))
			if err != nil {
				notSaved(t, err, messages.HibernateFull)
				refused.Add(1)
				return
			}
			saved.Add(1)
		})
	}
	wg.Wait()
	require.EqualValues(t, most, saved.Load())
	require.EqualValues(t, 3*most, refused.Load())
}

// TestTheAgeOfCheckpoints is bounded, from when they were saved: those that are listed can be
// restored, and one that has expired says so, makes room, and may be saved anew.
func TestTheAgeOfCheckpoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, x := t.Context(), messages.CheckpointKey{Name: "x"}
	saved := func(age time.Duration) time.Time {
		k := bounded(t, dir, 1, age)
		defer k.Close()
		m := saving("a", "x")
		m.Replace = true
		_, err := k.Save(ctx, sleeper(newFake("text"), "a"), m)
		require.NoError(t, err)
		list, err := k.Checkpoints(ctx)
		require.NoError(t, err)
		if len(list) == 0 { // it was so short
			return time.Now()
		}
		return list[0].Expires
	}
	require.WithinDuration(t, time.Now().Add(90*24*time.Hour), saved(0), time.Hour)
	require.WithinDuration(t, time.Now().Add(48*time.Hour), saved(48*time.Hour), time.Hour)
	require.Zero(t, saved(-1), "until it is dropped")

	saved(time.Nanosecond)
	k := bounded(t, dir, 1, time.Nanosecond) // its start drops what has expired
	_, err := k.Prepare(ctx, x, "", sleeper(newFake(""), "b"))
	require.Equal(t, "there is none of that name (one is kept for 1ns after it was saved)", notRestored(t, err, messages.RestoreUnknown))
	for range 2 { // the first of them takes no room any more
		_, err = k.Save(ctx, sleeper(newFake("text"), "a"), saving("a", "x"))
		require.NoError(t, err)
		_, err = k.Prepare(ctx, x, "", sleeper(newFake(""), "b"))
		require.Contains(t, notRestored(t, err, messages.RestoreUnknown), "and has expired; save it again, or have checkpoints kept for longer")
	}
	k.Close()
}

// TestWhatExpiresWhileItIsRestored is restored all the same: an interpreter has read it.
func TestWhatExpiresWhileItIsRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, x := t.Context(), messages.CheckpointKey{Name: "x"}
	var k *hibernate.Keeper
	var ready *hibernate.Ready
	for age := time.Second; ready == nil; age *= 2 { // a machine that is busy may take longer
		k = bounded(t, dir, 0, age)
		defer k.Close()
		m := saving("a", "x")
		m.Replace = true
		_, err := k.Save(ctx, sleeper(newFake("text"), "a"), m)
		require.NoError(t, err)
		if ready, err = k.Prepare(ctx, x, "", sleeper(newFake(""), "b")); err != nil {
			notRestored(t, err, messages.RestoreUnknown)
		}
	}
	require.Eventually(t, func() bool {
		list, err := k.Checkpoints(ctx)
		return err == nil && len(list) == 0
	}, time.Hour, time.Millisecond)
	bounded(t, dir, 0, 0).Close() // another host drops what has expired
	require.True(t, k.Begin(key("b"), ready.ID()))
	into := newFake("")
	woken, err := k.Wake(ctx, key("b"), "", into)
	require.NoError(t, err)
	require.Equal(t, "text", into.text)
	require.NotNil(t, woken.Restored)
}
