package messages_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

func TestKeysThatDifferHaveDifferentIDs(t *testing.T) {
	keys := []messages.SessionKey{
		{},
		{Session: "a"},
		{Cwd: "a"},
		{Session: "a@b"},
		{Session: "a", Cwd: "b"},
		{Session: "a@b", Cwd: "c"},
		{Session: "a", Cwd: "b@c"},
		{Kernel: "a"},
		{Session: "a", Kernel: "b"},
		{Session: "a%3Bb"},
		{Session: "a", Kernel: "b@c"},
		{Session: "a", Workspace: "b", Kernel: "c/d"},
		{Session: "a", Workspace: "b%3Bc"},
	}
	seen := map[string]messages.SessionKey{}
	for _, k := range keys {
		other, dup := seen[k.ID()]
		require.False(t, dup, "%v and %v", k, other)
		seen[k.ID()] = k
		back, ok := messages.ParseSessionKey(k.ID())
		require.True(t, ok)
		require.Equal(t, k, back)
	}
	for _, id := range []string{"", "a", "a%40", "a/b@/x", "a%2@/x", "a%zz@x"} {
		_, ok := messages.ParseSessionKey(id)
		require.False(t, ok, id)
	}
	require.Equal(t, "/x/y", messages.SessionKey{Cwd: "/x"}.In("y").Cwd)
	require.Equal(t, "/y", messages.SessionKey{Cwd: "/x"}.In("/y").Cwd)
	require.Equal(t, "/x", messages.SessionKey{Cwd: "/x"}.In("").Cwd)
	require.Equal(t, "a%40b@/x", messages.SessionKey{Session: "a@b", Cwd: "/x"}.ID())
	require.Equal(t, "a@/x", messages.SessionKey{Session: "a", Cwd: "/x"}.String())
	require.Equal(t, "a", messages.SessionKey{Session: "a"}.String())
	require.Equal(t, "w:a[ir]@/x", messages.SessionKey{Session: "a", Cwd: "/x", Workspace: "w", Kernel: "ir"}.String())
}

func TestNamesOfKernelspecs(t *testing.T) {
	for name, is := range map[string]bool{"": true, "python3": true, "a-b.C_9": true, "a b": false, "a/b": false, "é": false, strings.Repeat("a", messages.MaxKernelspec): true, strings.Repeat("a", messages.MaxKernelspec+1): false} {
		require.Equal(t, is, messages.IsKernelspec(name), name)
	}
}

func TestIDsAreUUIDsAndSort(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = messages.NewID()
		require.Regexp(t, form, ids[i])
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(ids))), len(ids))
}

func TestBundleText(t *testing.T) {
	b := messages.Bundle{"a": []byte(`"x"`), "b": []byte(`["l1\n","l2"]`), "c": []byte(`{"k":1}`)}
	for mime, want := range map[string]string{"a": "x", "b": "l1\nl2"} {
		got, ok := b.Text(mime)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok := b.Text("c")
	require.False(t, ok)
	_, ok = b.Text("none")
	require.False(t, ok)
	require.Positive(t, b.Size())
	require.Equal(t, "application/x-omp-status", messages.StatusMIME("omp"))
}

// FuzzParseSessionKey: what is read back is written the same, and every key is
// read back.
func FuzzParseSessionKey(f *testing.F) {
	for _, id := range []string{"", "@", "a@/srv", "a%40b@/x@y", "%", "%2f@", "%25@/"} {
		f.Add(id, "/srv")
	}
	f.Fuzz(func(t *testing.T, text, cwd string) {
		if key, ok := messages.ParseSessionKey(text); ok {
			require.Equal(t, text, key.ID())
		}
		want := messages.SessionKey{Session: text, Cwd: cwd}
		got, ok := messages.ParseSessionKey(want.ID())
		require.True(t, ok)
		require.Equal(t, want, got)
	})
}

func TestCheckpointsThatDifferHaveDifferentIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]messages.CheckpointKey{}
	for _, k := range []messages.CheckpointKey{{}, {Name: "a"}, {Name: "a", Workspace: "w"}, {Name: "w/a"}, {Name: "a/b", Workspace: "w"}, {Name: "b", Workspace: "w/a"}, {Name: "a@b"}, {Name: "a%2Fb"}} {
		other, dup := seen[k.ID()]
		require.False(t, dup, "%v and %v", k, other)
		seen[k.ID()] = k
		back, ok := messages.ParseCheckpointKey(k.ID())
		require.True(t, ok)
		require.Equal(t, k, back)
		_, session := messages.ParseSessionKey(k.ID())
		require.False(t, session, "no session has its name")
	}
	for _, id := range []string{"", "a", "checkpoint/a", "snapshot//a", "checkpoint//a/b", "checkpoint//a%zz", messages.SessionKey{Session: "a", Cwd: "/x"}.ID()} {
		_, ok := messages.ParseCheckpointKey(id)
		require.False(t, ok, id)
	}
	require.Equal(t, "a", messages.CheckpointKey{Name: "a"}.String())
	require.Equal(t, "a of the workspace w", messages.CheckpointKey{Name: "a", Workspace: "w"}.String())
}

func TestRefusedCheckpointsSaySo(t *testing.T) {
	t.Parallel()
	require.EqualError(t, &messages.HibernateRefused{Checkpoint: "x", Problem: "it would lose sock"}, `the checkpoint "x" was not made: it would lose sock`)
	require.EqualError(t, &messages.HibernateRefused{Problem: "it would lose sock"}, "the session was not hibernated: it would lose sock")
	require.EqualError(t, &messages.RestoreRefused{Problem: "it belongs to another owner"}, "the checkpoint was not restored: it belongs to another owner")
	require.EqualError(t, &messages.RestoreRefused{Checkpoint: "x", Problem: "no", Ended: true}, `the checkpoint "x" was not restored: no; the session's kernel has ended, and its next call begins without variables`)
}
