//go:build linux

package integration_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// Conversations on the gateway, of which only as many have a kernel as there is memory
// for: those that find no place wait, all of them get their answers, and the ones that
// lost their kernel to another are told. With COPPICE_TEST_FULL=1 there are fifty, and
// the places are those that the defaults find.
func TestConversationsOnTheGateway(t *testing.T) {
	t.Parallel()
	conversations, o := 3, coppice.Options{MaxSessions: 2}
	if full() {
		conversations, o = 50, coppice.Options{}
	}
	o.Backend = backends.Named(backends.Gateway)
	host := plain(t, o)
	places := host.Options().MaxSessions
	kept := 0
	for turn := range 2 {
		var wg sync.WaitGroup
		results, errs := make([]messages.Result, conversations), make([]error, conversations)
		begin := time.Now()
		for i := range conversations {
			wg.Go(func() {
				results[i], errs[i] = session(host, fmt.Sprint("agent-", i)).Execute(t.Context(), cells("n = globals().get('n', 0) + 1\nprint(n)"))
			})
		}
		wg.Wait()
		for i, r := range results {
			require.NoError(t, errs[i])
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			n := strings.TrimSpace(r.Cells[0].Output)
			switch {
			case r.State == messages.StateKept:
				kept++
				require.Equal(t, "2", n, r.Text)
			case turn == 0:
				require.Equal(t, "1", n, r.Text)
				require.Empty(t, r.Reason)
			default: // another took its place
				require.Equal(t, messages.StateFresh, r.State)
				require.Equal(t, "1", n, r.Text)
				require.NotEmpty(t, r.Reason)
			}
		}
		t.Logf("turn %d of %d conversations in %d places took %v", turn+1, conversations, places, time.Since(begin).Round(time.Millisecond))
	}
	t.Logf("%d of %d were kept", kept, conversations)
	if places >= conversations {
		require.Equal(t, conversations, kept)
	}
}
