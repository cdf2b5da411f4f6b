package kubelease

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/coppice-run/coppice/fleet"
)

// TestNames: each key has an object of its own, with a name that a server takes, and the
// selector of each of its prefixes finds it.
func TestNames(t *testing.T) {
	t.Parallel()
	n := names{fleet: strings.Repeat("f", maxFleet)}
	seen := map[string]string{}
	for _, key := range []string{
		"node.a", "node.A", "node.a-", "node.a=", "nodes.a", "Node.a", "node", "floor", "session.0123.4567",
		"_.x", "a_b.x", "=.x", "other.x", strings.Repeat("k", fleet.MaxKey), strings.Repeat("k", 40) + ".x",
	} {
		require.NoError(t, fleet.ValidKey(key))
		l := n.lease(key, []byte("\x00{}"))
		require.Empty(t, validation.NameIsDNSSubdomain(l.Name, false), key)
		require.Empty(t, seen[l.Name], "the object of %s, too", key)
		seen[l.Name] = key
		for i := range key {
			prefix := key[:i+1]
			if prefix[i] != '.' {
				continue
			}
			s, err := labels.Parse(n.selector(prefix))
			require.NoError(t, err)
			require.True(t, s.Matches(labels.Set(l.Labels)), "%s under %s", key, prefix)
		}
		all, err := labels.Parse(n.selector(""))
		require.NoError(t, err)
		require.True(t, all.Matches(labels.Set(l.Labels)))
		l.UID, l.ResourceVersion = "8c1d", "42"
		e, err := entry(l)
		require.NoError(t, err)
		require.Equal(t, fleet.Entry{Key: key, Value: []byte("\x00{}"), Rev: "8c1d/42"}, e)
		uid, version, ok := split(e.Rev)
		require.True(t, ok)
		require.Equal(t, []string{"8c1d", "42"}, []string{string(uid), version})
	}
	for _, rev := range []fleet.Revision{"", "7", "/7", "8c1d/"} {
		_, _, ok := split(rev)
		require.False(t, ok, rev)
	}
	for name, want := range map[string]bool{"coppice": true, "a-1": true, "": false, "-a": false, "a-": false, "A": false, "a.b": false, strings.Repeat("f", maxFleet+1): false} {
		require.Equal(t, want, validFleet(name), name)
	}
	l := n.lease("k", nil)
	l.Annotations[valueAnnotation] = "not base64"
	_, err := entry(l)
	require.ErrorContains(t, err, "read the Lease")
}
