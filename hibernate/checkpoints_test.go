package hibernate_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

func saving(session, name string) messages.SaveCheckpoint {
	return messages.SaveCheckpoint{Key: key(session), Checkpoint: messages.CheckpointKey{Name: name}}
}

func notSaved(t *testing.T, err error, reason messages.HibernateReason) {
	t.Helper()
	refused, ok := errors.AsType[*messages.HibernateRefused](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, reason, refused.Reason, refused.Problem)
}

func notRestored(t *testing.T, err error, reason messages.RestoreReason) (problem string) {
	t.Helper()
	refused, ok := errors.AsType[*messages.RestoreRefused](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, reason, refused.Reason, refused.Problem)
	require.False(t, refused.Ended)
	return refused.Problem
}

// begun has the next kernel of a session begin with a checkpoint, and returns what it has.
func begun(t *testing.T, k *hibernate.Keeper, name, session, owner string) (*fake, messages.Restored) {
	t.Helper()
	ready, err := k.Prepare(t.Context(), messages.CheckpointKey{Name: name}, owner, sleeper(newFake(""), session))
	require.NoError(t, err)
	defer ready.Leave()
	require.True(t, k.Begin(key(session), ready.ID()))
	into := newFake("")
	woken, err := k.Wake(t.Context(), key(session), owner, into)
	require.NoError(t, err)
	require.NotNil(t, woken.Restored)
	require.Equal(t, woken.Restored, ready.Restored())
	return into, *woken.Restored
}

// TestACheckpoint is there for any session, any number of times, whatever becomes of the one
// that it was made of.
func TestACheckpoint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k, s := keeper(t, dir, hibernate.Lossless)
	ctx := t.Context()
	a := newFake("one")
	a.lost = []string{"sock"}
	_, err := k.Save(ctx, sleeper(a, "a", "me"), saving("a", "x"))
	notSaved(t, err, messages.HibernateLossy)
	m := saving("a", "x")
	m.Lossy = true
	report, err := k.Save(ctx, sleeper(a, "a", "me"), m)
	require.NoError(t, err)
	require.Equal(t, messages.Memory{Kept: []string{"text"}, Lost: []messages.LostName{{Name: "sock", Type: "socket", Reason: "it is lost"}}}, report.Memory)
	require.EqualValues(t, 3, report.Bytes)
	require.Positive(t, report.Took)
	require.Zero(t, a.open.Load(), "the copy and the second interpreter are closed")

	// One of that name is not replaced unless that is meant, and by an owner of it.
	a.text = "two"
	_, err = k.Save(ctx, sleeper(a, "a", "me"), m)
	notSaved(t, err, messages.HibernateExists)
	m.Replace, m.Owner = true, "you"
	_, err = k.Save(ctx, sleeper(a, "a", "you"), m)
	notSaved(t, err, messages.HibernateOwner)
	_, restored := begun(t, k, "x", "b", "me")
	require.Equal(t, report.Memory, restored.Memory)
	m.Owner = "me"
	_, err = k.Save(ctx, sleeper(a, "a", "me"), m)
	require.NoError(t, err)

	require.NoError(t, k.Drop(ctx, key("a")))
	list, err := k.List(ctx)
	require.NoError(t, err)
	require.Empty(t, list, "a checkpoint is no session on disk")
	k.Close()
	k, _ = keeper(t, dir, hibernate.Lossless) // a later host
	defer k.Close()
	for _, session := range []string{"a", "b", "b"} {
		into, _ := begun(t, k, "x", session, "me")
		require.Equal(t, "two", into.text)
	}
	saved, err := k.Checkpoints(ctx)
	require.NoError(t, err)
	require.Len(t, saved, 1)
	require.Equal(t, messages.CheckpointKey{Name: "x"}, saved[0].Key)
	require.Equal(t, key("a"), saved[0].Session)
	require.Equal(t, []string{"me"}, saved[0].Owners)
	require.False(t, saved[0].Open)
	require.Equal(t, "3.12.1", saved[0].Python)
	headers, err := s.List(ctx)
	require.NoError(t, err)
	require.Equal(t, hibernate.UsualSavedAge, headers[0].Expires.Sub(headers[0].Made), "it is kept until it is dropped, and for so long at most")

	require.ErrorContains(t, k.DropCheckpoint(ctx, messages.CheckpointKey{Name: "x"}, "you"), "belongs to another owner")
	require.NoError(t, k.DropCheckpoint(ctx, messages.CheckpointKey{Name: "x"}, "me"))
	require.ErrorIs(t, k.DropCheckpoint(ctx, messages.CheckpointKey{Name: "x"}, ""), store.ErrNone)
}

// TestACheckpointThatIsRefused is as it was, and nothing has begun with it.
func TestACheckpointThatIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k, s := keeper(t, dir, hibernate.Lossy)
	defer k.Close()
	ctx, x := t.Context(), messages.CheckpointKey{Name: "x"}
	_, err := k.Prepare(ctx, x, "me", sleeper(newFake(""), "b"))
	notRestored(t, err, messages.RestoreUnknown)
	_, err = k.Save(ctx, sleeper(newFake("text"), "a", "me"), saving("a", "x"))
	require.NoError(t, err)
	for _, owner := range []string{"", "you"} {
		trial := newFake("")
		_, err = k.Prepare(ctx, x, owner, sleeper(trial, "b"))
		notRestored(t, err, messages.RestoreOwner)
		require.Zero(t, trial.starts.Load(), "no interpreter is started for another owner")
	}
	_, err = k.Prepare(ctx, messages.CheckpointKey{Name: "x", Workspace: "w"}, "me", sleeper(newFake(""), "b"))
	notRestored(t, err, messages.RestoreUnknown)

	bad := newFake("")
	bad.thawErr = &messages.HibernateRefused{Reason: messages.HibernateFailed, Problem: "the package numpy was 1 and is 2"}
	_, err = k.Prepare(ctx, x, "me", sleeper(bad, "b"))
	require.Equal(t, "the package numpy was 1 and is 2", notRestored(t, err, messages.RestoreFailed))
	require.Zero(t, bad.open.Load())

	other := newFake("")
	other.python = "3.9.2"
	_, err = k.Prepare(ctx, x, "me", sleeper(other, "b"))
	require.Contains(t, notRestored(t, err, messages.RestorePython), "it was kept by Python 3.12.1, and this is Python 3.9.2")
	require.Zero(t, other.thaws.Load(), "it is told before anything is loaded")

	// An interpreter that fails after the trial: the next one begins with it all the same.
	ready, err := k.Prepare(ctx, x, "me", sleeper(newFake(""), "b"))
	require.NoError(t, err)
	require.True(t, k.Begin(key("b"), ready.ID()))
	into := newFake("")
	into.thawErr = errors.New("no")
	_, err = k.Wake(ctx, key("b"), "me", into)
	require.ErrorIs(t, err, into.thawErr)
	require.Nil(t, ready.Restored())
	into.thawErr = nil
	woken, err := k.Wake(ctx, key("b"), "me", into)
	require.NoError(t, err)
	require.Equal(t, "text", into.text)
	require.Equal(t, []string{"me"}, woken.Owners)
	ready.Close()
	require.NotNil(t, ready.Restored())
	woken, err = k.Wake(ctx, key("b"), "me", newFake(""))
	require.NoError(t, err)
	require.Zero(t, woken, "a kernel begins with it once")

	// What is changed in any way is refused, is no reason not to drop it, and is not listed.
	records, err := filepath.Glob(filepath.Join(dir, "kept", "records", "*", "*.rec"))
	require.NoError(t, err)
	require.Len(t, records, 1)
	whole, err := os.ReadFile(records[0])
	require.NoError(t, err)
	for name, broken := range map[string][]byte{"cut": whole[:len(whole)/2], "flipped": append(append([]byte{}, whole[:len(whole)-1]...), whole[len(whole)-1]^1), "nonsense": []byte("nonsense")} {
		require.NoError(t, os.WriteFile(records[0], broken, 0o600))
		trial := newFake("")
		_, err = k.Prepare(ctx, x, "me", sleeper(trial, "b"))
		notRestored(t, err, messages.RestoreBroken)
		require.Zero(t, trial.starts.Load(), name)
	}
	_, err = k.Save(ctx, sleeper(newFake("text"), "a", "me"), saving("a", "x"))
	notSaved(t, err, messages.HibernateExists)
	require.NoError(t, k.DropCheckpoint(ctx, x, "me"))
	list, err := s.List(ctx)
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestWhatASessionHadBefore is there until it has begun with a checkpoint, and when it was
// given up.
func TestWhatASessionHadBefore(t *testing.T) {
	t.Parallel()
	k, _ := keeper(t, t.TempDir(), hibernate.Lossy)
	ctx, x := t.Context(), messages.CheckpointKey{Name: "x"}
	_, err := k.Save(ctx, sleeper(newFake("saved"), "a"), saving("a", "x"))
	require.NoError(t, err)
	for what, giveUp := range map[string]func(*hibernate.Ready){"closed": (*hibernate.Ready).Close, "replaced": func(*hibernate.Ready) {
		again, err := k.Prepare(ctx, x, "", sleeper(newFake(""), "b"))
		require.NoError(t, err)
		require.True(t, k.Begin(key("b"), again.ID()))
		again.Close()
	}} {
		_, err = k.Sleep(ctx, sleeper(newFake("its own"), "b"))
		require.NoError(t, err)
		ready, err := k.Prepare(ctx, x, "", sleeper(newFake(""), "b"))
		require.NoError(t, err)
		require.True(t, k.Begin(key("b"), ready.ID()), what)
		giveUp(ready)
		require.False(t, k.Begin(key("b"), ready.ID()), what)
		into := newFake("")
		_, err = k.Wake(ctx, key("b"), "", into)
		require.NoError(t, err)
		require.Equal(t, "its own", into.text, what)
	}
	_, err = k.Sleep(ctx, sleeper(newFake("its own"), "b"))
	require.NoError(t, err)
	into, restored := begun(t, k, "x", "b", "")
	require.Equal(t, "saved", into.text)
	require.Empty(t, restored.Notes)
	list, err := k.List(ctx)
	require.NoError(t, err)
	require.Empty(t, list, "it is older than what the session has")

	// A reset begins without either.
	ready, err := k.Prepare(ctx, x, "", sleeper(newFake(""), "b"))
	require.NoError(t, err)
	require.True(t, k.Begin(key("b"), ready.ID()))
	k.Forget(key("b"))
	woken, err := k.Wake(ctx, key("b"), "", newFake(""))
	require.NoError(t, err)
	require.Zero(t, woken)

	// In another folder, it says so; and the end of the host gives up what no one has taken.
	elsewhere := messages.SessionKey{Session: "b", Cwd: "/tmp"}
	ready, err = k.Prepare(ctx, x, "", sleeper(newFake(""), "b"))
	require.NoError(t, err)
	require.True(t, k.Begin(elsewhere, ready.ID()))
	ready.Leave()
	woken, err = k.Wake(ctx, elsewhere, "", newFake(""))
	require.NoError(t, err)
	require.Equal(t, []string{"it was kept in /srv and is now in /tmp: paths that variables hold are as they were"}, woken.Restored.Notes)
	ready, err = k.Prepare(ctx, x, "", sleeper(newFake(""), "b"))
	require.NoError(t, err)
	ready.Leave()
	require.False(t, k.Begin(elsewhere, ready.ID()))
	ready, err = k.Prepare(ctx, x, "", sleeper(newFake(""), "b"))
	require.NoError(t, err)
	k.Close()
	require.False(t, k.Begin(elsewhere, ready.ID()))
}

// TestACheckpointOfASessionOnDisk needs no kernel.
func TestACheckpointOfASessionOnDisk(t *testing.T) {
	t.Parallel()
	k, _ := keeper(t, t.TempDir(), hibernate.Lossless)
	defer k.Close()
	ctx := t.Context()
	_, err := k.SaveAsleep(ctx, saving("a", "x"))
	notSaved(t, err, messages.HibernateNoKernel)
	slept, err := k.Sleep(ctx, sleeper(newFake("text"), "a", "me"))
	require.NoError(t, err)
	kept, err := k.SaveAsleep(ctx, saving("a", "x"))
	require.NoError(t, err)
	require.Equal(t, slept.Memory, kept.Memory)
	require.Equal(t, slept.Bytes, kept.Bytes)
	_, err = k.SaveAsleep(ctx, saving("a", "x"))
	notSaved(t, err, messages.HibernateExists)
	into := newFake("")
	_, err = k.Wake(ctx, key("a"), "me", into)
	require.NoError(t, err)
	require.Equal(t, "text", into.text, "the session has its own, too")
	into, _ = begun(t, k, "x", "b", "me")
	require.Equal(t, "text", into.text)
}

// TestCheckpointsOfOwnersAndWorkspaces go with the last of them.
func TestCheckpointsOfOwnersAndWorkspaces(t *testing.T) {
	t.Parallel()
	k, s := keeper(t, t.TempDir(), hibernate.Lossy)
	ctx := t.Context()
	for name, owners := range map[string][]string{"mine": {"me"}, "ours": {"me", "you"}, "all": nil} {
		_, err := k.Save(ctx, sleeper(newFake(name), "a", owners...), saving("a", name))
		require.NoError(t, err)
	}
	within := saving("a", "all")
	within.Checkpoint.Workspace = "team"
	_, err := k.Save(ctx, sleeper(newFake("w"), "a"), within)
	require.NoError(t, err, "each workspace has names of its own")
	require.NoError(t, k.Release(ctx, "me"))
	_, err = k.Prepare(ctx, messages.CheckpointKey{Name: "ours"}, "me", sleeper(newFake(""), "b"))
	notRestored(t, err, messages.RestoreOwner)
	begun(t, k, "ours", "b", "you")
	k.ForgetWorkspace("team")
	k.Close()
	list, err := s.List(ctx)
	require.NoError(t, err)
	names := make([]string, 0, len(list))
	for _, h := range list {
		names = append(names, h.Name)
	}
	require.Equal(t, []string{"checkpoint//all", "checkpoint//ours"}, names)
}
