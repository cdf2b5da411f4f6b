package prom_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/prom"
)

// step is a change of one child, a second after the one before.
type step struct {
	path     string
	epoch    uint64
	from, to messages.ChildState
	exit     messages.ExitKind
}

func hear(t *prom.Tree, steps ...step) {
	at := time.Unix(0, 0)
	for _, s := range steps {
		at = at.Add(time.Second)
		e := messages.ChildChanged{At: at, Path: s.path, Kind: "kernel", Epoch: s.epoch, From: s.from, To: s.to}
		if s.exit != "" {
			e.Exit = &messages.Exit{Kind: s.exit}
		}
		t.Hear(e)
	}
}

func TestTheTreeIsCounted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		steps []step
		want  string
	}{
		"a start, work, an end": {
			steps: []step{
				{"a", 0, "", messages.ChildWaiting, ""},
				{"a", 1, messages.ChildWaiting, messages.ChildStarting, ""},
				{"a", 1, messages.ChildStarting, messages.ChildIdle, ""},
				{"a", 1, messages.ChildIdle, messages.ChildBusy, ""},
				{"a", 1, messages.ChildBusy, messages.ChildIdle, ""},
				{"a", 1, messages.ChildIdle, messages.ChildStopping, messages.ExitEvicted},
				{"a", 1, messages.ChildStopping, messages.ChildGone, messages.ExitEvicted},
			},
			want: `ends_total{kind="kernel",reason="evicted"} 1
starts_total{kind="kernel",outcome="ok"} 1`,
		},
		"a failure and a restart": {
			steps: []step{
				{"a", 1, messages.ChildWaiting, messages.ChildStarting, ""},
				{"a", 1, messages.ChildStarting, messages.ChildBusy, ""},
				{"a", 1, messages.ChildBusy, messages.ChildSuspended, messages.ExitHung},
				{"a", 1, messages.ChildSuspended, messages.ChildRestarting, messages.ExitHung},
				{"a", 1, messages.ChildRestarting, messages.ChildRestarting, ""},
				{"a", 2, messages.ChildRestarting, messages.ChildStarting, ""},
				{"a", 2, messages.ChildStarting, messages.ChildIdle, ""},
			},
			want: `ends_total{kind="kernel",reason="hung"} 1
restarts_total{kind="kernel"} 1
starts_total{kind="kernel",outcome="ok"} 2`,
		},
		"a failure that is forgiven": {
			steps: []step{
				{"a", 1, messages.ChildWaiting, messages.ChildStarting, ""},
				{"a", 1, messages.ChildStarting, messages.ChildBusy, ""},
				{"a", 1, messages.ChildBusy, messages.ChildSuspended, messages.ExitFailed},
				{"a", 1, messages.ChildSuspended, messages.ChildBusy, ""},
			},
			want: `starts_total{kind="kernel",outcome="ok"} 1`,
		},
		"a start that fails": {
			steps: []step{
				{"a", 1, messages.ChildWaiting, messages.ChildStarting, ""},
				{"a", 1, messages.ChildStarting, messages.ChildSuspended, messages.ExitFailed},
				{"a", 1, messages.ChildSuspended, messages.ChildGone, messages.ExitFailed},
				{"b", 1, messages.ChildWaiting, messages.ChildStarting, ""},
			},
			want: `ends_total{kind="kernel",reason="failed"} 1
starts_total{kind="kernel",outcome="failed"} 1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := prom.NewTree(prom.TreeOptions{})
			hear(tree, tc.steps...)
			registry := prometheus.NewPedanticRegistry()
			require.NoError(t, registry.Register(tree))
			require.Equal(t, tc.want, counters(t, registry))
		})
	}
}

// counters are the counters of a registry, in order, without the namespace.
func counters(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	var lines []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetCounter() == nil {
				continue
			}
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			lines = append(lines, strings.TrimPrefix(f.GetName(), "coppice_")+"{"+strings.Join(labels, ",")+"} "+formatted(m.GetCounter().GetValue()))
		}
	}
	return strings.Join(lines, "\n")
}

func formatted(v float64) string { return strings.TrimSuffix(time.Duration(v*1e9).String(), "s") }

func TestASnapshotIsAddedUp(t *testing.T) {
	t.Parallel()
	tree := prom.NewTree(prom.TreeOptions{})
	root := messages.Node{Kind: "supervisor", State: messages.ChildIdle, Children: []messages.Node{{
		Kind: "gateway", State: messages.ChildIdle, Queue: 2,
		Children: []messages.Node{
			{Name: "secret-name", Kind: "kernel", State: messages.ChildBusy, Queue: 3, RSS: 100},
			{Kind: "kernel", State: messages.ChildIdle, RSS: 50, Abandoned: []messages.Leftover{{}}},
			{Kind: "kernel", State: messages.ChildIdle},
		},
	}}}
	var failed error
	tree.Show(func(context.Context) (messages.Node, error) { return root, failed })
	want := `# HELP coppice_queued Work that waits for actors of a kind, without what they have in hand.
# TYPE coppice_queued gauge
coppice_queued{kind="gateway"} 2
coppice_queued{kind="kernel"} 3
coppice_queued{kind="supervisor"} 0
# HELP coppice_children Actors of the tree, by kind and state: those of kind kernel are sessions.
# TYPE coppice_children gauge
coppice_children{kind="gateway",state="idle"} 1
coppice_children{kind="kernel",state="busy"} 1
coppice_children{kind="kernel",state="failed"} 0
coppice_children{kind="kernel",state="idle"} 2
coppice_children{kind="kernel",state="starting"} 0
coppice_children{kind="kernel",state="waiting"} 0
coppice_children{kind="supervisor",state="idle"} 1
# HELP coppice_children_memory_bytes Resident memory of the processes of a kind of actors, as far as it is known.
# TYPE coppice_children_memory_bytes gauge
coppice_children_memory_bytes{kind="kernel"} 150
# HELP coppice_abandoned Actors that did not end in time and whose end is not confirmed.
# TYPE coppice_abandoned gauge
coppice_abandoned 1
`
	require.NoError(t, testutil.CollectAndCompare(tree, strings.NewReader(want)))
	problems, err := testutil.CollectAndLint(tree)
	require.NoError(t, err)
	require.Empty(t, problems)
	failed = errors.New("ended")
	require.Zero(t, testutil.CollectAndCount(tree))
}
