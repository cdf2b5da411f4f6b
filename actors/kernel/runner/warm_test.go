//go:build linux

package runner_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
)

const marks = "import os\nos.coppice_preludes = getattr(os, 'coppice_preludes', 0) + 1\np = 'prelude'"

// The first session of a fork server does not wait for the modules that all share;
// the others find them, and a prelude that has run once.
func TestSessionsThatComeWithTheirServer(t *testing.T) {
	t.Parallel()
	f := startServer(runner.ServerOptions{Prelude: marks, Preload: []string{"statistics"}, Spares: -1})
	t.Cleanup(func() { require.NoError(t, f.stop()) })
	b := runner.New(runner.Options{Server: f.server, Prelude: marks})
	const n = 5
	var got [n]string
	var wg sync.WaitGroup
	for at := range n {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			i, err := b.Start(ctx, kernel.StartOptions{Env: map[string]string{"COPPICE_W": "w"}})
			if err != nil {
				got[at] = err.Error()
				return
			}
			got[at] = run(t, i, "import sys\np, os.environ['COPPICE_W'], os.coppice_preludes >= 1, 'statistics' in sys.modules").text()
			if err := i.Close(ctx); err != nil {
				got[at] = err.Error()
			}
		})
	}
	wg.Wait()
	early := 0
	for _, text := range got {
		if text == "=> ('prelude', 'w', True, False)" {
			early++
			continue
		}
		require.Equal(t, "=> ('prelude', 'w', True, True)", text)
	}
	require.LessOrEqual(t, early, 1)
	i := sessionOn(t, f, runner.Options{Prelude: marks}, kernel.StartOptions{})
	// As often as the server has run it: in its own namespaces, and not in the session's.
	before := ok(t, i, "os.coppice_preludes").text()
	j := sessionOn(t, f, runner.Options{Prelude: marks}, kernel.StartOptions{})
	require.Equal(t, before, ok(t, j, "os.coppice_preludes").text())
	other := sessionOn(t, f, runner.Options{Prelude: "q = 1"}, kernel.StartOptions{})
	require.Equal(t, "=> 1", ok(t, other, "q").text(), "a prelude that the server does not know runs in the session")
}
