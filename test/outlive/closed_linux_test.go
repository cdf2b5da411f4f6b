package outlive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
)

// TestWhatIsClosedIsNotLeft: a session that was closed or reset a moment before its host
// leaves, while that host was still taking it over from an earlier one, is not left to the
// next: nothing of it is there, and neither is its process.
func TestWhatIsClosedIsNotLeft(t *testing.T) {
	for backend, gateway := range on(false, true) {
		t.Run(backend, func(t *testing.T) {
			r := newRoleOf(t, gateway)
			r.Sessions = 6
			ctx := context.Background()
			rounds := 3
			if gateway {
				rounds = 1
			}
			if os.Getenv("COPPICE_TEST_FULL") != "" {
				rounds *= 4
			}
			for round := range rounds {
				host := next(t, r)
				run := func(i int, code string) messages.Result {
					t.Helper()
					result, err := host.Session(name(i), coppice.In(r.Home)).Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}})
					require.NoError(t, err)
					return result
				}
				pids := make([]int, r.Sessions)
				for i := range r.Sessions {
					result := run(i, fmt.Sprintf("x = %d\nimport os\nprint(os.getpid())", i))
					require.Equal(t, messages.OutcomeOK, result.Outcome, result.Text)
					pid, err := strconv.Atoi(strings.TrimSpace(result.Cells[0].Output))
					require.NoError(t, err)
					pids[i] = pid
				}
				require.True(t, host.Leave(ctx).Clean())

				host = next(t, r)
				for i := range r.Sessions {
					s := host.Session(name(i), coppice.In(r.Home))
					switch i % 3 {
					case 0:
						require.NoError(t, s.Close(ctx))
					case 1:
						require.NoError(t, s.Reset(ctx))
					}
				}
				require.True(t, host.Leave(ctx).Clean())
				for i, pid := range pids {
					if i%3 == 2 {
						require.True(t, proc.Alive(pid), "round %d, session %d", round, i)
						continue
					}
					require.Eventually(t, func() bool { return !proc.Alive(pid) }, patience, 20*time.Millisecond, "round %d, session %d", round, i)
				}

				host = next(t, r)
				for i := range r.Sessions {
					result := run(i, "print(x)")
					if i%3 == 2 {
						require.Equal(t, messages.OutcomeOK, result.Outcome, "round %d, session %d: %s", round, i, result.Text)
						require.Equal(t, messages.StateKept, result.State)
						continue
					}
					require.Equal(t, messages.OutcomeError, result.Outcome, "round %d, session %d: %s", round, i, result.Text)
					require.Equal(t, "NameError", result.Cells[0].Error.Name)
				}
				require.True(t, host.Shutdown(ctx).Clean())
			}
		})
	}
}

// TestWhatRunsAsAHostLeaves is cancelled here, and not lost: it goes on, with its variables.
func TestWhatRunsAsAHostLeaves(t *testing.T) {
	for backend, gateway := range on(false, true) {
		t.Run(backend, func(t *testing.T) {
			r := newRoleOf(t, gateway)
			host := next(t, r)
			gate := filepath.Join(r.Home, "gate")
			results := map[string]chan messages.Result{"new": make(chan messages.Result, 1), "old": make(chan messages.Result, 1)}
			for key, result := range results {
				s := host.Session(key, coppice.In(r.Home))
				if key == "old" {
					_, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "x = 1"}}})
					require.NoError(t, err)
				}
				began := filepath.Join(r.Home, key)
				go func() {
					got, err := s.Execute(context.Background(), coppice.Request{ID: key, Cells: []messages.Cell{{Code: fmt.Sprintf("y = 2\nopen(%q, 'w').close()\nimport os, time\nwhile not os.path.exists(%q): time.sleep(.005)", began, gate)}, {Code: "y + 1"}}})
					if err != nil {
						t.Error(err)
					}
					result <- got
				}()
				require.Eventually(t, func() bool { _, err := os.Stat(began); return err == nil }, patience, 5*time.Millisecond)
			}
			require.True(t, host.Leave(t.Context()).Clean())
			for key, state := range map[string]messages.State{"new": messages.StateFresh, "old": messages.StateKept} {
				got := <-results[key]
				require.Equal(t, messages.OutcomeCancelled, got.Outcome, got.Text)
				require.Equal(t, state, got.State, got.Text)
				require.NotContains(t, got.Text, "gone")
			}
			host = next(t, r)
			require.NoError(t, os.WriteFile(gate, nil, 0o600))
			for key := range results {
				result, err := host.Session(key, coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "y"}}})
				require.NoError(t, err)
				require.Equal(t, "2", result.Cells[0].Output, result.Text)
				require.Equal(t, messages.StateKept, result.State)
			}
			require.True(t, host.Shutdown(t.Context()).Clean())
		})
	}
}

// TestAStartThatIsGivenUp loses nothing of what earlier hosts have left, whenever that is: the next
// one has it all.
func TestAStartThatIsGivenUp(t *testing.T) {
	for backend, gateway := range on(false, true) {
		t.Run(backend, func(t *testing.T) {
			r := newRoleOf(t, gateway)
			const sessions = 3
			host := next(t, r)
			for i := range sessions {
				result, err := host.Session(name(i), coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: fmt.Sprintf("x = %d", i)}}})
				require.NoError(t, err)
				require.Equal(t, messages.OutcomeOK, result.Outcome, result.Text)
			}
			require.True(t, host.Leave(context.Background()).Clean())

			given, after := 0, 100*time.Microsecond
			for {
				ctx, cancel := context.WithCancel(t.Context())
				o := r.options()
				o.AwaitKept = func(context.Context) error { // the tree stands, and what is kept is looked for next
					time.AfterFunc(after, cancel)
					return nil
				}
				var err error
				host, err = coppice.Start(ctx, o)
				if err == nil {
					cancel()
					break
				}
				require.ErrorIs(t, err, context.Canceled)
				given, after = given+1, after*3/2
			}
			t.Logf("given up %d times", given)
			if !gateway { // which has nothing to wait for
				require.Positive(t, given)
			}
			for i := range sessions {
				result, err := host.Session(name(i), coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "x"}}})
				require.NoError(t, err)
				require.Equal(t, messages.StateKept, result.State, "session %d: %s", i, result.Reason)
				require.Equal(t, strconv.Itoa(i), result.Cells[0].Output)
			}
			require.True(t, host.Shutdown(context.Background()).Clean())
		})
	}
}
