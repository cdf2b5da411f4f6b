package supervisor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/supervisor"
)

// echo answers every work with its message.
var echo = behaviour{handle: func(c *supervisor.Ctx, m any) error {
	if w, ok := m.(supervisor.Work); ok {
		c.Finish(w, w.Msg)
	}
	return nil
}}

// dynamic is a door whose children are all a.
func dynamic(a behaviour) *door {
	return &door{spec: func(_ *supervisor.Shell, _ string, w supervisor.Work) (supervisor.Spec, error) {
		return supervisor.Spec{New: of(a), Owner: w.Owner}, nil
	}}
}

func TestSmoke(t *testing.T) {
	sys := start(t, supervisor.SystemOptions{Children: []supervisor.Spec{
		shell("gate", supervisor.Options{Door: dynamic(echo)}),
	}})
	gate := sys.Ref("gate")
	for range 100 {
		require.Equal(t, 7, answer(t, submit(t, gate, "k", 7)))
	}
	n, err := sys.Snapshot(t.Context())
	require.NoError(t, err)
	require.Len(t, n.Children, 1)
	require.Len(t, n.Children[0].Children, 1)
	require.EqualValues(t, 100, n.Children[0].Children[0].Done)
}
