//go:build linux

package integration_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
)

// TestTheTimeForAStart is that of the process too that kernels come from.
func TestTheTimeForAStart(t *testing.T) {
	for backend, why := range map[string]string{
		backends.Runner:  "start the fork server: no answer in ",
		backends.Gateway: "it gave no answer in ",
	} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			host, err := coppice.Start(t.Context(), coppice.Options{Backend: backends.Named(backend), Python: testpython.Path(t), Home: t.TempDir(), StartTimeout: time.Millisecond})
			require.NoError(t, err)
			t.Cleanup(func() { host.Shutdown(t.Context()) })
			ended := make(chan string, 64)
			t.Cleanup(host.Watch(func(l messages.Lifecycle) {
				if c, ok := l.(messages.ChildChanged); ok && c.Exit != nil {
					select {
					case ended <- c.Exit.Reason:
					default: // seen enough
					}
				}
			}))
			r, err := host.Session("s", coppice.In(t.TempDir())).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "1"}}})
			require.ErrorAs(t, err, new(*messages.NotStartedError))
			require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
			for reason := ""; !strings.Contains(reason, why); {
				select {
				case reason = <-ended:
				case <-time.After(time.Minute):
					require.FailNow(t, "the process was not given up")
				}
			}
		})
	}
}
