package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/messages"
)

// TestThePastIsBounded: the oldest ends are forgotten first, and no sooner than they must be.
func TestThePastIsBounded(t *testing.T) {
	t.Parallel()
	known := func(p gateway.Past) (keys string) {
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			if p.Get(key) != nil {
				keys += key
			}
		}
		return keys
	}
	p := gateway.NewPast(3)
	for _, key := range []string{"a", "b", "c"} {
		p.Put(key, messages.Exit{Kind: messages.ExitEvicted})
	}
	require.Equal(t, "abc", known(p))
	p.Put("a", messages.Exit{Kind: messages.ExitReset})
	require.Equal(t, messages.ExitReset, p.Get("a").Kind)
	p.Drop("b")
	p.Drop("b")
	p.Drop("never")
	require.Equal(t, "ac", known(p))
	p.Put("d", messages.Exit{})
	require.Equal(t, "acd", known(p))
	p.Put("e", messages.Exit{})
	require.Equal(t, "cde", known(p))
}
