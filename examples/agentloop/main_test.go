//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheConversation(t *testing.T) {
	for _, backend := range []string{backends.Runner, backends.Gateway} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			require.NoError(t, run(t.Context(), coppice.Options{Backend: backends.Named(backend), Python: testpython.Path(t), Home: t.TempDir()}, &out))
			for _, want := range []string{
				"ok: {'tea': 4, 'milk': 1}", "for Ada", "'exp_1'", "fork_1 completed 4", "fork_2 completed 8", "fork_3 completed 12", "'queued'",
				"4 messages are left", "- [exp_1] the tea is for Ada",
			} {
				require.Contains(t, out.String(), want)
			}
		})
	}
}
