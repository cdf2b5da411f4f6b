package httpapi_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/messages"
)

// TestManyClients lets clients with connections of their own call sessions that
// they share. COPPICE_TEST_FULL=1 asks for 200 clients and 50 sessions.
func TestManyClients(t *testing.T) {
	t.Parallel()
	clients, sessions, calls := 12, 4, 3
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		clients, sessions, calls = 200, 50, 20
	}
	s := serve(t, coppice.Options{MaxSessions: sessions}, httpapi.Options{Retention: httpapi.Retention{Keep: clients * calls}})
	for i := range sessions {
		_, err := s.Open(t.Context(), client.Open{Session: fmt.Sprint("s", i), Pin: true})
		require.NoError(t, err)
	}
	var mu sync.Mutex
	var took []time.Duration // guarded by mu
	var joins sync.WaitGroup
	for i := range clients {
		joins.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			c, err := client.New(client.Options{URL: s.url, Token: token, Transport: transport})
			if err != nil {
				t.Error(err)
				return
			}
			for n := range calls {
				began := time.Now()
				if err := one(t, c, fmt.Sprint("s", (i+n)%sessions)); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	joins.Wait()
	require.Len(t, took, clients*calls)
	slices.Sort(took)
	t.Logf("%d clients, %d sessions, %d calls: p50 %v, p99 %v, most %v", clients, sessions, len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	all := 0
	for i := range sessions {
		n := 0
		_, err := fmt.Sscan(s.run(fmt.Sprint("s", i), "print(n)").Cells[0].Output, &n)
		require.NoError(t, err)
		all += n
	}
	require.Equal(t, clients*calls, all) // each call ran once
}

// one makes a call from its start to its last event.
func one(t *testing.T, c *client.Client, session string) error {
	t.Helper()
	for e, err := range c.Run(t.Context(), client.Execute{Session: session, Cells: cells("n = globals().get('n', 0) + 1")}) {
		if err != nil {
			return err
		}
		if final, ok := e.(messages.Final); ok && final.Result.Outcome != messages.OutcomeOK {
			return fmt.Errorf("%s: %s", session, final.Result.Text)
		}
	}
	return nil
}
