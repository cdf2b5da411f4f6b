package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingIsLeftOfTheWaitlist when nobody waits any more: it counts the groups that wait.
func TestNothingIsLeftOfTheWaitlist(t *testing.T) {
	t.Parallel()
	var l waitlist
	var all []*child
	for _, kind := range []string{"x", "x", "y"} {
		ch := &child{spec: &Spec{Kind: kind}}
		l.add(ch)
		all = append(all, ch)
	}
	require.Equal(t, 3, l.n)
	require.Equal(t, map[tallyKey]int{{kind: "x"}: 2, {kind: "y"}: 1}, l.groups)
	l.remove(all[1])
	require.Equal(t, map[tallyKey]int{{kind: "x"}: 1, {kind: "y"}: 1}, l.groups)
	l.remove(all[0])
	l.remove(all[2])
	require.Equal(t, waitlist{groups: map[tallyKey]int{}, turns: 3}, l)
}
