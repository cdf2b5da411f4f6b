package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// full skips what is of the long run.
func full(t *testing.T) {
	t.Helper()
	if os.Getenv("COPPICE_TEST_FULL") == "" {
		t.Skip("set COPPICE_TEST_FULL=1")
	}
}

// TestTheOwnerIsKilled: a session is one at each node; when its owner is killed, what was
// sent to it is not begun again, the loss is told before anything runs, and then the
// session begins anew at another node. A session that is closed is given up.
func TestTheOwnerIsKilled(t *testing.T) {
	t.Parallel()
	theOwnerIsKilled(t, newNodes(t))
}

func theOwnerIsKilled(t *testing.T, fleet *nodes) {
	t.Helper()
	a, b := fleet.node("a"), fleet.node("b")
	mark := filepath.Join(t.TempDir(), "begun")
	effect := fmt.Sprintf("open(%q, 'a').write('x'); x = 40", mark)

	begun := a.run("e1", effect, 0)
	require.Equal(t, http.StatusCreated, begun.status, begun.body)
	require.Equal(t, "1", begun.header.Get("Coppice-Epoch"))
	require.True(t, strings.HasPrefix(begun.header.Get("Coppice-Node"), "a-"), begun.header)
	at := begun.header.Get("Coppice-Node")

	again := b.run("e1", effect, 0)
	require.Equal(t, http.StatusOK, again.status, "it is there: %s", again.body)
	require.Equal(t, at, again.header.Get("Coppice-Node"))
	require.Equal(t, http.StatusCreated, b.run("e2", "x += 2; print(x)", 0).status)
	_, outcome, state, text := b.result("e2")
	require.Equal(t, []string{"ok", "kept", "42"}, []string{outcome, state, text}, "it runs where x is")
	require.Contains(t, b.get("/api/sessions").body, `"node":"`+at+`"`)
	events := b.settled(http.MethodGet, "/api/executions/e2/events", "", 0)
	require.Contains(t, events.body, `"text":"42\n"`)
	require.Contains(t, events.body, `"type":"final"`)

	a.signal(syscall.SIGKILL)
	<-a.gone
	again = b.run("e1", effect, 0)
	require.Equal(t, http.StatusConflict, again.status, again.body)
	require.Equal(t, "epoch_needed", again.code())
	require.Equal(t, "2", again.header.Get("Coppice-Epoch"))
	again = b.run("e1", effect, 1)
	require.Equal(t, http.StatusConflict, again.status, again.body)
	require.Equal(t, "epoch_gone", again.code())
	data, err := os.ReadFile(mark)
	require.NoError(t, err)
	require.Equal(t, "x", string(data), "it was done once")
	lost, _, _, _ := b.result("e2")
	require.Equal(t, http.StatusGone, lost.status, lost.body)
	require.Equal(t, "lost", lost.code())

	begun = b.run("e3", "print('x' in globals())", 2)
	require.Equal(t, http.StatusCreated, begun.status, begun.body)
	require.True(t, strings.HasPrefix(begun.header.Get("Coppice-Node"), "b-"), begun.header)
	_, outcome, state, text = b.result("e3")
	require.Equal(t, []string{"ok", "fresh", "False"}, []string{outcome, state, text})
	require.Equal(t, "1", b.metric("coppice_fleet_claims"))

	require.Equal(t, http.StatusNoContent, b.settled(http.MethodDelete, "/api/sessions/s", "", 0).status)
	require.Eventually(t, func() bool { return b.metric("coppice_fleet_claims") == "0" }, patience, 50*time.Millisecond, "its claim is released")
	require.Equal(t, "3", b.run("e4", "x = 1", 0).header.Get("Coppice-Epoch"), "the next one is a new epoch")
}

// TestThePausedOwner: a node that stands still between the end of a cell and its answer,
// for longer than its lease, does not give that answer.
func TestThePausedOwner(t *testing.T) {
	t.Parallel()
	full(t)
	fleet := newNodes(t)
	a, b := fleet.node("a"), fleet.node("b")
	stop := fmt.Sprintf("import os, signal\nos.kill(%d, signal.SIGSTOP)\nprint('o' + 'ld')", a.pid)
	require.Equal(t, http.StatusCreated, a.run("e1", stop, 0).status)
	require.Eventually(t, a.stopped, patience, 10*time.Millisecond)

	refused := b.run("e2", "print('new')", 0)
	require.Equal(t, "lost", refused.code(), "it was sent on, and may have begun: %s", refused.body)
	refused = b.run("e2", "print('new')", 0)
	require.Equal(t, "epoch_needed", refused.code(), refused.body)
	require.Equal(t, http.StatusCreated, b.run("e2", "print('new')", 2).status)
	_, outcome, state, text := b.result("e2")
	require.Equal(t, []string{"ok", "fresh", "new"}, []string{outcome, state, text})

	a.signal(syscall.SIGCONT)
	answer, outcome, state, text := a.result("e1")
	require.Equal(t, []string{"lost", "lost"}, []string{outcome, state}, answer.body)
	require.NotContains(t, answer.body, "old", "nothing of what it came to")
	require.Contains(t, text, "may have had effects")
	require.NotContains(t, a.get("/api/executions/e1/events").body, "old")
	require.Eventually(t, func() bool { return a.metric("coppice_fleet_lives_total") == "2" }, patience, 50*time.Millisecond)
	require.Equal(t, "1", a.metric("coppice_fleet_lost_total"))
	require.Equal(t, http.StatusCreated, a.run("e3", "print('on')", 2).status, "it sends on what is another's")
	_, _, state, _ = a.result("e3")
	require.Equal(t, "kept", state)
}

// TestTheEngineIsAway for three times as long as a lease: calls are refused with the
// reason, and nothing is lost.
func TestTheEngineIsAway(t *testing.T) {
	t.Parallel()
	full(t)
	theEngineIsAway(t, newNodes(t))
}

func theEngineIsAway(t *testing.T, fleet *nodes) {
	t.Helper()
	a, b := fleet.node("a"), fleet.node("b")
	require.Equal(t, http.StatusCreated, a.run("e1", "x = 41", 0).status)
	_, outcome, _, _ := a.result("e1")
	require.Equal(t, "ok", outcome)
	fleet.stop()
	away := time.Now()
	for _, n := range []*node{a, b} {
		require.Eventually(t, func() bool { return n.get("/readyz").status == http.StatusServiceUnavailable }, patience, 100*time.Millisecond)
		refused := n.ask(http.MethodPost, "/api/executions", `{"id":"e2","session":"s","cells":[{"code":"x += 1"}]}`, 0)
		require.Equal(t, http.StatusServiceUnavailable, refused.status, refused.body)
		require.Equal(t, "suspended", refused.code())
		require.NotEmpty(t, refused.header.Get("Retry-After"))
	}
	time.Sleep(time.Until(away.Add(3 * ttl))) //nolint:forbidigo // it is away for so long
	fleet.start()
	for _, n := range []*node{a, b} {
		require.Eventually(t, func() bool { return n.get("/readyz").status == http.StatusOK }, patience, 100*time.Millisecond)
	}
	require.Equal(t, http.StatusCreated, b.run("e2", "x += 1; print(x)", 1).status)
	_, outcome, state, text := b.result("e2")
	require.Equal(t, []string{"ok", "kept", "42"}, []string{outcome, state, text})
}

// threeEmbed starts three nodes that each run a server of the directory.
func threeEmbed(t *testing.T) []*node {
	t.Helper()
	fleet := &nodes{t: t, work: t.TempDir()}
	var servers []string
	for _, port := range freePorts(t, 3) {
		servers = append(servers, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	all := make([]*node, 3)
	made := make(chan struct{})
	for i := range all {
		go func() { // each waits for the others; ends with its start
			defer func() { made <- struct{}{} }()
			all[i] = fleet.node(fmt.Sprintf("n%d", i+1), "--fleet", strings.Join(servers, ","), "--fleet-embed", "--fleet-node", fmt.Sprint(i+1))
		}()
	}
	for range all {
		<-made
	}
	require.NotContains(t, all, (*node)(nil))
	return all
}

// TestThreeEmbed: three nodes that each run a server of the directory go on when one of
// them is killed.
func TestThreeEmbed(t *testing.T) {
	t.Parallel()
	full(t)
	all := threeEmbed(t)
	require.Equal(t, http.StatusCreated, all[0].run("e1", "x = 1", 0).status)
	all[0].signal(syscall.SIGKILL)
	<-all[0].gone
	require.Equal(t, "epoch_needed", all[2].run("e2", "x = 2", 0).code())
	require.Equal(t, http.StatusCreated, all[2].run("e2", "x = 2", 2).status)
	require.Equal(t, http.StatusCreated, all[1].run("e3", "print(x)", 2).status)
	_, _, _, text := all[1].result("e3")
	require.Equal(t, "2", text)
}

// TestOneStandsStill: of three nodes that each run a server of the directory, one that stands still
// keeps its connections. It alone is declared dead; the other two keep their lives, and what their
// sessions have in memory, whichever of the three it is.
func TestOneStandsStill(t *testing.T) {
	t.Parallel()
	full(t)
	for still := range 3 {
		t.Run(fmt.Sprintf("the node %d", still+1), func(t *testing.T) {
			t.Parallel()
			all := threeEmbed(t)
			for i, n := range all {
				body := fmt.Sprintf(`{"id":"e%d","session":"s%d","cells":[{"code":"x = %d"}]}`, i, i, i)
				require.Equal(t, http.StatusCreated, n.settled(http.MethodPost, "/api/executions", body, 0).status)
				n.result(fmt.Sprintf("e%d", i))
			}
			all[still].signal(syscall.SIGSTOP)
			require.Eventually(t, all[still].stopped, patience, 10*time.Millisecond)
			frozen := time.Now()
			var healthy []*node
			for i, n := range all {
				if i != still {
					healthy = append(healthy, n)
				}
			}
			// Its session is another's in the end; meanwhile, the answer is that it may not be known.
			require.Eventually(t, func() bool {
				a := healthy[0].ask(http.MethodPost, "/api/executions", fmt.Sprintf(`{"id":"f","session":"s%d","cells":[{"code":"x"}]}`, still), 1)
				return a.code() == "epoch_gone"
			}, patience, 100*time.Millisecond)
			t.Logf("the session of the one that stands still was another's after %s", time.Since(frozen))
			for i, n := range all {
				if i == still {
					continue
				}
				require.Equal(t, "1", n.metric("coppice_fleet_lives_total"))
				body := fmt.Sprintf(`{"id":"g%d","session":"s%d","cells":[{"code":"print(x)"}]}`, i, i)
				require.Equal(t, http.StatusCreated, n.settled(http.MethodPost, "/api/executions", body, 1).status)
				_, _, state, text := n.result(fmt.Sprintf("g%d", i))
				require.Equal(t, []string{"kept", fmt.Sprint(i)}, []string{state, text})
			}
		})
	}
}
