package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

var treeNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func tree() messages.Node {
	ago := func(d time.Duration) time.Time { return treeNow.Add(-d) }
	return messages.Node{Name: "supervisor", Kind: "supervisor", State: messages.ChildIdle, Children: []messages.Node{
		{Name: "sinks", State: messages.ChildIdle},
		{Name: "gateway", State: messages.ChildIdle, Children: []messages.Node{
			{Name: "kernel-gateway", State: messages.ChildIdle, PID: 4711, RSS: 60 << 20},
			{Name: "a@/home/me/project", State: messages.ChildBusy, Since: ago(1240 * time.Millisecond), PID: 4712, RSS: 53*1024*1024 + 100000, Queue: 2, Pinned: true},
			{Name: "b@/srv/a/very/long/path/that/nobody/wants/to/read", State: messages.ChildRestarting, Since: ago(90 * time.Second), Restarts: 1, LastExit: &messages.Exit{Kind: messages.ExitFailed, Reason: "killed by signal 9"}},
			{Name: "c@/home/me", State: messages.ChildBusy, Detail: "interrupting", Restarts: 2},
			{Name: "d", State: "unheard-of"},
		}},
	}}
}

// TestTree draws a tree with everything in it.
func TestTree(t *testing.T) {
	t.Parallel()
	for as, style := range styles {
		lines := render.Tree(tree(), render.TreeOptions{Style: style, Now: treeNow, Home: "/home/me"})
		golden(t, "tree_"+as, strings.Join(lines, "\n")+"\n")
	}
	short := render.Tree(tree(), render.TreeOptions{Names: func(n messages.Node) string {
		if session, _, ok := strings.Cut(n.Name, "@"); ok {
			return session
		}
		return ""
	}})
	require.Contains(t, short[4], "● a  ")
	require.NotContains(t, short[4], " for ", "without a clock there are no ages")
	folded := render.Tree(tree(), render.TreeOptions{Fold: func(n messages.Node) bool { return n.Name == "gateway" || n.Name == "sinks" }})
	require.Equal(t, []string{
		"○ supervisor  idle",
		"├─ ○ sinks    idle",
		"└─ ○ gateway  idle · 1 idle, 2 busy, 1 restarting, 1 unheard-of",
	}, folded)
}

// TestLifecycle writes each event on a line.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	failed := &messages.Exit{Kind: messages.ExitFailed, Reason: "killed by signal 9"}
	for _, tt := range []struct {
		event messages.Lifecycle
		want  string
	}{
		{messages.ChildChanged{Path: "gateway/a", To: messages.ChildStarting}, "gateway/a  starting"},
		{messages.ChildChanged{Path: "gateway/a", From: messages.ChildBusy, To: messages.ChildSuspended, Exit: failed}, "gateway/a  busy → suspended (failed: killed by signal 9)"},
		{messages.Decided{Path: "gateway/a", Directive: "restart", After: 2 * time.Second, Exit: failed}, "gateway/a  decided: restart after 2 s (failed: killed by signal 9)"},
		{messages.Decided{Path: "gateway/a", Directive: "stop", Exit: &messages.Exit{Kind: messages.ExitEvicted}}, "gateway/a  decided: stop (evicted)"},
		{messages.Dropped{Path: "gateway/a", Count: 3, What: "messages"}, "gateway/a  dropped 3 messages"},
	} {
		require.Equal(t, tt.want, render.Lifecycle(render.Style{}, tt.event))
		require.Equal(t, tt.want, render.Plain(render.Lifecycle(render.Style{Colour: true}, tt.event)))
	}
}

// TestShutdown writes a clean end and one that left something.
func TestShutdown(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"✓ clean shutdown: 5 actors stopped in 12 ms, 1 call ended by it"},
		render.Shutdown(render.Style{}, messages.ShutdownReport{Stopped: 5, Unanswered: 1, Duration: 12 * time.Millisecond}))
	require.Equal(t, []string{
		"✗ shutdown: 1 actor stopped in 5 s, 1 actor left over",
		"  gateway/a: hung: it did not end, pid 7",
	}, render.Shutdown(render.Style{}, messages.ShutdownReport{Stopped: 1, Duration: 5 * time.Second, Leftovers: []messages.Leftover{
		{Path: "gateway/a", Exit: messages.Exit{Kind: messages.ExitHung, Reason: "it did not end"}, PID: 7},
	}}))
}

// TestRepaint goes up as many lines as the last frame had.
func TestRepaint(t *testing.T) {
	t.Parallel()
	require.Equal(t, "\x1b[Ja\nb\n", render.Repaint([]string{"a", "b"}, 0))
	require.Equal(t, "\x1b[2A\x1b[Ja\n", render.Repaint([]string{"a"}, 2))
}

// TestTable sets columns, wide characters too.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"name", "value"}, {"日本", "1"}, {"x"}}
	require.Equal(t, []string{"name  value", "日本  1", "x"}, render.Table(render.Style{}, rows, true))
	require.Equal(t, []string{"nam…", "日…", "x"}, render.Table(render.Style{Width: 4}, rows, true))
}

// TestChecks marks what failed.
func TestChecks(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"ok      it works (seen)", "FAILED  it stops"},
		render.Checks(render.Style{}, []render.Check{{What: "it works", OK: true, Detail: "seen"}, {What: "it stops"}}))
}

// TestUnits writes durations, sizes, numbers and paths.
func TestUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-1: "0 ms", 0: "0 µs", 840 * time.Microsecond: "840 µs", 12 * time.Millisecond: "12 ms", 1240 * time.Millisecond: "1.24 s",
		9999 * time.Millisecond: "10.00 s", 12 * time.Second: "12 s", 12340 * time.Millisecond: "12.3 s", 125 * time.Second: "2 min 5 s", 3 * time.Hour: "180 min 0 s",
	} {
		require.Equal(t, want, render.Duration(d))
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 53 << 20: "53.0 MiB", 5 << 40: "5120.0 GiB"} {
		require.Equal(t, want, render.Bytes(n))
	}
	require.Equal(t, "1 entry, 2 entries, 2 matches, 0 cells", strings.Join([]string{
		render.Number(1, "entry"), render.Number(2, "entry"), render.Number(2, "match"), render.Number(0, "cell"),
	}, ", "))
	require.Equal(t, "~/x", render.ShortPath("/home/me/x", "/home/me", 0))
	require.Equal(t, "/home/men", render.ShortPath("/home/men", "/home/me", 0))
	require.Equal(t, "…f/g", render.ShortPath("/a/b/c/d/e/f/g", "", 4))
}
