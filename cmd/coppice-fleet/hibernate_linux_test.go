package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// keeps has all nodes keep sessions on disk, in one folder that is sealed with one key.
func (n *nodes) keeps() *nodes {
	n.t.Helper()
	dir, key := filepath.Join(n.t.TempDir(), "kept"), filepath.Join(n.t.TempDir(), "key")
	_, err := store.LoadKey(n.t.Context(), key)
	require.NoError(n.t, err)
	n.more = func() []string {
		return []string{"--hibernate", "lossy", "--fleet-store", dir, "--fleet-store-key", key}
	}
	return n
}

// told waits for the result of an execution.
func (n *node) told(id string) messages.Result {
	n.t.Helper()
	a, _, _, _ := n.result(id)
	require.Equal(n.t, http.StatusOK, a.status, a.body)
	var x client.Execution
	require.NoError(n.t, json.Unmarshal([]byte(a.body), &x))
	return *x.Result
}

// ran has code run in a session, in an epoch that the client knows, and returns the result.
func (n *node) ran(id, session, code string, epoch int) messages.Result {
	n.t.Helper()
	begun := n.settled(http.MethodPost, "/api/executions", fmt.Sprintf(`{"id":%q,"session":%q,"cells":[{"code":%q}]}`, id, session, code), epoch)
	require.Equal(n.t, http.StatusCreated, begun.status, begun.body)
	return n.told(id)
}

// goesOn has code run in a session of which the client knows no epoch, as the refusal says.
func (n *node) goesOn(id, session, code string) messages.Result {
	n.t.Helper()
	refused := n.settled(http.MethodPost, "/api/executions", fmt.Sprintf(`{"id":%q,"session":%q,"cells":[{"code":%q}]}`, id, session, code), 0)
	require.Equal(n.t, "epoch_needed", refused.code(), refused.body)
	return n.ran(id, session, code, epochOf(n.t, refused))
}

// asleep are the sessions that a node lists as kept on disk, with the node that each is at.
func (n *node) asleep() map[string]string {
	n.t.Helper()
	var list struct{ Sessions []client.Session }
	require.NoError(n.t, json.Unmarshal([]byte(n.get("/api/sessions?hibernated=true").body), &list))
	found := map[string]string{}
	for _, s := range list.Sessions {
		if s.Kept != nil {
			found[s.Session] += s.Node + "."
		}
	}
	return found
}

// TestDrainKeeps: what an idle session of a node that is drained has in memory is there at
// another node, with its list; a lock that it held is lost, and said.
func TestDrainKeeps(t *testing.T) {
	t.Parallel()
	fleet := newNodes(t).keeps()
	long := []string{"--fleet-ttl", (4 * patience).String(), "--drain-timeout", patience.String()}
	a, b := fleet.node("a", long...), fleet.node("b", long...)
	on := filepath.Join(t.TempDir(), "on")
	a.ran("i1", "idle", "import threading\nx = {'n': 41}; y = x; lock = threading.Lock()", 0)
	running := fmt.Sprintf("import os, time\nz = 1\nwhile not os.path.exists(%q): time.sleep(0.05)\nprint('done')", on)
	require.Equal(t, http.StatusCreated, a.begin("r1", "running", running, 0).status)
	ended := make(chan messages.Result)
	go func() { ended <- b.told("r1") }() // ends with the execution

	a.signal(syscall.SIGTERM)
	require.Eventually(t, func() bool { return a.get("/readyz").status == http.StatusServiceUnavailable }, patience, 10*time.Millisecond, "until then it takes what comes")
	require.Eventually(t, func() bool { return b.begin("i2", "idle", "1", 0).code() == "epoch_needed" }, patience, 10*time.Millisecond)
	refused := b.begin("i2", "idle", "1", 0)
	require.Contains(t, refused.body, "with what was kept of it on disk")
	require.Equal(t, map[string]string{"idle": "."}, b.asleep(), "it is at no node")
	// Who knows the epoch goes on with a new id: the node that had it says that it is new.
	told := b.ran("i2", "idle", "x['n'] += 1\nprint(x['n'], y is x, 'lock' in globals())", 1)
	require.Equal(t, messages.StateRestored, told.State)
	require.Equal(t, "42 True False", strings.TrimSpace(told.Cells[0].Output))
	require.Subset(t, told.Restored.Kept, []string{"threading", "x", "y"})
	require.Len(t, told.Restored.Lost, 1)
	require.Equal(t, "lock", told.Restored.Lost[0].Name)
	require.Contains(t, strings.Join(told.Notices, "\n"), "with what was kept of it on disk")
	require.Empty(t, b.asleep())
	told = b.ran("i3", "idle", "print(x['n'])", 2)
	require.Equal(t, messages.StateKept, told.State)
	require.Empty(t, told.Notices)

	require.NoError(t, os.WriteFile(on, nil, 0o600))
	require.Equal(t, messages.OutcomeOK, (<-ended).Outcome)
	<-a.gone
	refused = b.begin("r1", "running", "1", 1)
	require.Equal(t, "begun", refused.code(), "the claim has it: %s", refused.body)
	told = b.ran("r2", "running", "print(z)", 1)
	require.Equal(t, messages.StateRestored, told.State, "it is new, as the claim says, though the node that had the session is gone")

	// And to a node that comes later: by the command that drains.
	c := fleet.node("c", long...)
	program, err := os.Executable()
	require.NoError(t, err)
	drain := exec.CommandContext(t.Context(), program, "drain")
	drain.Env = append(os.Environ(), asNode+"=1", "COPPICE_HOME="+b.home)
	out, err := drain.CombinedOutput()
	require.NoError(t, err, string(out))
	<-b.gone
	require.Equal(t, map[string]string{"idle": ".", "running": "."}, c.asleep())
	told = c.goesOn("i4", "idle", "print(x['n'])")
	require.Equal(t, messages.StateRestored, told.State)
	require.Equal(t, "42", strings.TrimSpace(told.Cells[0].Output))
	require.Equal(t, http.StatusNoContent, c.settled(http.MethodDelete, "/api/sessions/running", "", 0).status, "it has no kernel")
	require.Empty(t, c.asleep())
	told = c.goesOn("r3", "running", "print('z' in globals())")
	require.Equal(t, messages.StateFresh, told.State)
	require.Equal(t, "False", strings.TrimSpace(told.Cells[0].Output))
}

// TestKilledWhenItWasKept: what a session had when it was last kept on disk is there after the
// death of its node, if it has not been at work since; else it is fresh.
func TestKilledWhenItWasKept(t *testing.T) {
	t.Parallel()
	fleet := newNodes(t).keeps()
	a, b := fleet.node("a"), fleet.node("b")
	for _, session := range []string{"kept", "again"} {
		require.Equal(t, messages.StateFresh, a.ran(session+"1", session, "x = 41", 0).State)
		kept := a.settled(http.MethodPost, "/api/sessions/"+session+"/hibernate", "", 0)
		require.Equal(t, http.StatusOK, kept.status, kept.body)
	}
	require.Equal(t, map[string]string{"kept": ".", "again": "."}, a.asleep())
	seen := a.begin("again2", "again", "x += 1", 1)
	require.Equal(t, http.StatusCreated, seen.status, seen.body)
	told := a.told("again2")
	require.Equal(t, messages.StateRestored, told.State)
	a.signal(syscall.SIGKILL)
	<-a.gone

	told = b.goesOn("kept2", "kept", "print(x + 1)")
	require.Equal(t, messages.StateRestored, told.State)
	require.Equal(t, "42", strings.TrimSpace(told.Cells[0].Output))
	require.Contains(t, strings.Join(told.Notices, "\n"), "with what was kept of it on disk")

	refused := b.settled(http.MethodPost, "/api/executions", `{"id":"again3","session":"again","cells":[{"code":"1"}]}`, 1)
	require.Equal(t, "epoch_gone", refused.code(), refused.body)
	require.Contains(t, refused.body, "it was last kept on disk at 20")
	told = b.goesOn("again3", "again", "print('x' in globals())")
	require.Equal(t, messages.StateFresh, told.State, "what it did last is in no record")
	require.Equal(t, "False", strings.TrimSpace(told.Cells[0].Output))
	require.Contains(t, strings.Join(told.Notices, "\n"), "is gone")
	require.Contains(t, strings.Join(told.Notices, "\n"), "and has gone on since, so what was kept is out of date, and is not restored")
	require.Empty(t, b.asleep())
}

// epochOf is the epoch that a refusal says.
func epochOf(t *testing.T, a answer) int {
	t.Helper()
	var p struct{ Error client.Error }
	require.NoError(t, json.Unmarshal([]byte(a.body), &p))
	return int(p.Error.Epoch)
}

// TestTheOwnerComesBack after another node has had its session: it ends what it had, and
// neither keeps it nor drops what the other has kept.
func TestTheOwnerComesBack(t *testing.T) {
	t.Parallel()
	fleet := newNodes(t).keeps()
	a, b := fleet.node("a"), fleet.node("b")
	require.Equal(t, messages.StateFresh, a.ran("e1", "s", "x = 'old'", 0).State)
	a.signal(syscall.SIGSTOP)
	require.Eventually(t, a.stopped, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return b.begin("e2", "s", "1", 0).code() == "epoch_needed" }, patience, 100*time.Millisecond)
	require.Equal(t, messages.StateFresh, b.ran("e2", "s", "x = 'new'", 2).State)
	kept := b.settled(http.MethodPost, "/api/sessions/s/hibernate", "", 0)
	require.Equal(t, http.StatusOK, kept.status, kept.body)
	require.Equal(t, map[string]string{"s": "."}, b.asleep())

	a.signal(syscall.SIGCONT)
	require.Eventually(t, func() bool { return a.metric("coppice_fleet_lives_total") == "2" }, patience, 10*time.Millisecond, "it has ended what it had")
	require.Equal(t, map[string]string{"s": "."}, a.asleep())
	refused := a.settled(http.MethodPost, "/api/executions", `{"id":"e3","session":"s","cells":[{"code":"1"}]}`, 1)
	require.Equal(t, "epoch_gone", refused.code(), refused.body)
	told := a.ran("e3", "s", "print(x)", epochOf(t, refused))
	require.Equal(t, messages.StateRestored, told.State)
	require.Equal(t, "new", strings.TrimSpace(told.Cells[0].Output))
}

// TestAnotherKey: a node whose key is another one than that of the fleet does not join it.
func TestAnotherKey(t *testing.T) {
	t.Parallel()
	fleet := newNodes(t).keeps()
	fleet.node("a")
	other := filepath.Join(t.TempDir(), "key")
	_, err := store.LoadKey(t.Context(), other)
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	serve := func(key string) string {
		cmd := exec.CommandContext(t.Context(), program, append(append([]string{"serve", "--addr", "127.0.0.1:0", "--fleet", fleet.servers}, fleet.more()...), "--fleet-store-key", key)...)
		cmd.Env = append(os.Environ(), asNode+"=1", "COPPICE_HOME="+t.TempDir(), "COPPICE_TOKEN="+token)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		return string(out)
	}
	require.Contains(t, serve(other), "sealed with another key")
	require.Contains(t, serve(other+".none"), "make one, once")
	require.NoError(t, os.Chmod(other, 0o644)) //nolint:gosec // that is what is refused
	require.Contains(t, serve(other), "chmod 600")
}
