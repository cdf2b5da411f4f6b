package httpapi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// What a person looks for later is there when thousands of calls have come since, once and
// in its order.
func TestChangesThatAreNotableStay(t *testing.T) {
	c := newChanges()
	turn := func(n int) {
		for range n {
			c.tree(messages.ChildChanged{Key: "a@/w", From: messages.ChildIdle, To: messages.ChildBusy})
			c.execution(client.Execution{ID: "x", Outcome: messages.OutcomeOK})
		}
	}
	exit := &messages.Exit{Kind: messages.ExitFailed, Reason: "killed"}
	turn(1)
	c.tree(messages.ChildChanged{Key: "a@/w", From: messages.ChildBusy, To: messages.ChildSuspended, Exit: exit})    // 3
	c.tree(messages.ChildChanged{Key: "a@/w", From: messages.ChildRestarting, To: messages.ChildStarting, Epoch: 2}) // 4
	c.execution(client.Execution{ID: "lost", Outcome: messages.OutcomeLost})                                         // 5
	c.tree(messages.Decided{Path: "p", Directive: "restart"})                                                        // 6
	turn(keptChanges)
	c.tree(messages.ChildChanged{Key: "a@/w", From: messages.ChildIdle, To: messages.ChildGone, Exit: exit})
	last := c.newest()
	all := func(client.Change) bool { return true }
	numbers := func(list []client.Change) (ns []uint64) {
		for _, one := range list {
			ns = append(ns, one.Seq)
		}
		return ns
	}
	list, more, newest, forgotten := c.page(0, 1<<62, true, keptChanges+10, all)
	require.False(t, more)
	require.Equal(t, last, newest)
	require.Equal(t, last-keptChanges, forgotten)
	ns := numbers(list)
	require.Len(t, ns, 4+keptChanges, "what is notable and new is there once")
	require.Equal(t, []uint64{3, 4, 5, 6, forgotten + 1}, ns[:5])
	require.IsIncreasing(t, ns)

	list, more, _, _ = c.page(4, 6, true, 10, all)
	require.False(t, more)
	require.Equal(t, []uint64{5}, numbers(list))
	list, more, _, _ = c.page(0, forgotten+2, false, 2, all)
	require.True(t, more)
	require.Equal(t, []uint64{6, forgotten + 1}, numbers(list))

	for i := range 2 * keptNotable {
		c.execution(client.Execution{ID: fmt.Sprint(i), Outcome: messages.OutcomeError})
	}
	require.Len(t, numbers(c.notable), keptNotable)
	list, _, newest, _ = c.page(0, 1<<62, true, 3*keptChanges, all)
	require.IsIncreasing(t, numbers(list))
	require.Equal(t, newest, list[len(list)-1].Seq)
}

// One session is looked up without a look at the processes of the others.
func TestALookAtOneSessionIsOne(t *testing.T) {
	t.Parallel()
	host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Python: testpython.Path(t)})
	require.NoError(t, err)
	defer func() { require.True(t, host.Shutdown(t.Context()).Clean()) }()
	a, err := New(Options{Host: host, Cwd: t.TempDir()})
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	var looked []int
	a.cpu = func(pid int) float64 { looked = append(looked, pid); return 1 }
	for i := range 3 {
		_, err := a.o.Host.Session(fmt.Sprint("s", i), coppice.In(a.o.Cwd)).Execute(t.Context(), coppice.Request{})
		require.NoError(t, err)
	}
	key := messages.SessionKey{Session: "s1", Cwd: a.o.Cwd}
	s, err := a.find(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []int{s.PID}, looked)
	list, err := a.kernels(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Contains(t, list, s)
	_, err = a.find(t.Context(), messages.SessionKey{Session: "none", Cwd: a.o.Cwd})
	require.ErrorIs(t, err, errNotFound)
	_, has, err := host.Find(t.Context(), messages.SessionKey{})
	require.NoError(t, err)
	require.False(t, has)
	_, _, err = host.Find(nil, key) //nolint:staticcheck // that is what is tried
	require.Error(t, err)
}
