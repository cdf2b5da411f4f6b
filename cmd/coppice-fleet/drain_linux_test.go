package main

import (
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
)

// begin starts an execution of a session of any name, once.
func (n *node) begin(id, session, code string, epoch int) answer {
	n.t.Helper()
	return n.ask(http.MethodPost, "/api/executions", fmt.Sprintf(`{"id":%q,"session":%q,"cells":[{"code":%q}]}`, id, session, code), epoch)
}

// TestDrain: a node that is asked to end begins nothing more, and says which other one to
// ask. What runs comes to its end and its result is told; the next call of each session
// begins at the other node at once, long before a lease could end.
func TestDrain(t *testing.T) {
	t.Parallel()
	fleet := newNodes(t)
	long := []string{"--fleet-ttl", (4 * patience).String(), "--drain-timeout", patience.String()}
	a, b := fleet.node("a", long...), fleet.node("b", long...)
	on := filepath.Join(t.TempDir(), "on")
	code := fmt.Sprintf("import os, time\nwhile not os.path.exists(%q): time.sleep(0.05)\nprint('done')", on)
	require.Equal(t, http.StatusCreated, a.begin("i1", "idle", "x = 1", 0).status)
	_, outcome, _, _ := a.result("i1")
	require.Equal(t, "ok", outcome)
	require.Equal(t, http.StatusCreated, a.begin("e1", "s", code, 0).status)
	told := make(chan []string)
	go func() { // ends with the execution
		_, outcome, _, text := b.result("e1")
		told <- []string{outcome, text}
	}()

	a.signal(syscall.SIGTERM)
	require.Eventually(t, func() bool { return a.get("/readyz").status == http.StatusServiceUnavailable }, patience, 10*time.Millisecond)
	refused := a.begin("n1", "new", "1", 0)
	require.Equal(t, http.StatusServiceUnavailable, refused.status, refused.body)
	require.Equal(t, "draining", refused.code())
	require.Contains(t, refused.body, "at "+b.url)
	refused = b.begin("e2", "s", "1", 1)
	require.Equal(t, "draining", refused.code(), "it still has its last call run: %s", refused.body)
	require.Eventually(t, func() bool { return b.begin("i2", "idle", "1", 0).code() == "epoch_needed" }, patience, 10*time.Millisecond, "nothing runs in it: it is given up")
	begun := b.begin("i2", "idle", "print('x' in globals())", 2)
	require.Equal(t, http.StatusCreated, begun.status, begun.body)
	require.True(t, strings.HasPrefix(begun.header.Get("Coppice-Node"), "b-"), begun.header)
	_, outcome, state, text := b.result("i2")
	require.Equal(t, []string{"ok", "fresh", "False"}, []string{outcome, state, text})
	require.NoError(t, os.WriteFile(on, nil, 0o600))
	require.Equal(t, []string{"ok", "done"}, <-told)
	<-a.gone

	refused = b.begin("e2", "s", "1", 0)
	require.Equal(t, "epoch_needed", refused.code(), refused.body)
	require.Equal(t, http.StatusCreated, b.begin("e2", "s", "print('on')", 2).status)
	_, outcome, state, text = b.result("e2")
	require.Equal(t, []string{"ok", "fresh", "on"}, []string{outcome, state, text})
	require.NotContains(t, b.get("/api/sessions").body, `"unreachable"`, "the other has left")

	program, err := os.Executable()
	require.NoError(t, err)
	drain := exec.CommandContext(t.Context(), program, "drain")
	drain.Env = append(os.Environ(), asNode+"=1", "COPPICE_HOME="+b.home)
	out, err := drain.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "has ended\n")
	<-b.gone
}

// TestDrainInTime: what still runs when its time is up is cancelled, and whoever waits for
// it learns so.
func TestDrainInTime(t *testing.T) {
	t.Parallel()
	full(t)
	fleet := newNodes(t)
	a, b := fleet.node("a", "--drain-timeout", "1s"), fleet.node("b")
	require.Equal(t, http.StatusCreated, a.begin("e1", "s", "while True: pass", 0).status)
	told := make(chan string)
	go func() { // ends with the execution
		_, outcome, _, _ := a.result("e1")
		told <- outcome
	}()
	require.Eventually(t, func() bool { return strings.Contains(a.get("/api/executions").body, `"state":"running"`) }, patience, 10*time.Millisecond)
	a.signal(syscall.SIGTERM)
	<-a.gone
	require.Contains(t, []string{"cancelled", ""}, <-told, "cancelled, or nobody is there to ask between two requests")
	require.Equal(t, "epoch_needed", b.begin("e2", "s", "1", 0).code())
}
