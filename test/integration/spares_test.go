//go:build linux

package integration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// Sessions that were forked ahead are no sessions of the host: they do not count,
// and they are gone with it, which start looks for.
func TestSparesOfAHost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o    coppice.Options
		want int
	}{
		"two by default":             {o: coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{})}, want: 2},
		"as many as sessions":        {o: coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), MaxSessions: 1}, want: 1},
		"as many as were asked for":  {o: coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{Spares: 3})}, want: 3},
		"none when none are wanted":  {o: coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{Spares: -1})}, want: 0},
		"none without a fork server": {o: coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{NoFork: true})}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := start(t, tt.o)
			s := session(host, "a")
			run(t, s, cells("x = 1"))
			require.Eventually(t, func() bool { return host.Spares() == tt.want }, time.Minute, 5*time.Millisecond)
			require.Len(t, kernels(t, host), 1)
			require.Equal(t, messages.StateKept, run(t, s, cells("x")).State)
		})
	}
}
