package vitals_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/messages"
)

// TestTogether: what servers have counted in one step is one sample, with the number of the first; the
// worst problems of all come first, and those of a server itself say which one it is.
func TestTogether(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	step := func(n int) time.Time { return at.Add(time.Duration(n) * 5 * time.Second) }
	key := messages.SessionKey{Session: "s", Cwd: "/w"}
	own := client.Overview{
		At: step(3), StepSeconds: 5, Newest: 12, Limits: client.Limits{Sessions: 64, CPUs: 2}, Hibernated: 3,
		Samples: []client.Sample{
			{Seq: 11, At: step(1), Sessions: map[messages.ChildState]int{messages.ChildIdle: 1}, P99: 9, CPU: 10},
			{Seq: 12, At: step(2), P50: 2},
		},
		Problems: []client.Problem{{Level: client.LevelShaky, Kind: "machine", What: "The machine is busy."}},
	}
	other := client.Overview{
		StepSeconds: 5, Limits: client.Limits{Sessions: 8, CPUs: 4, Fork: true}, Hibernated: 3,
		Samples: []client.Sample{
			{Seq: 900, At: step(0).Add(-time.Second), Starts: 100}, // before what was asked for
			{Seq: 901, At: step(1).Add(-time.Second), Sessions: map[messages.ChildState]int{messages.ChildIdle: 2}, P99: 4, CPU: 5, Deaths: 1},
			{Seq: 902, At: step(2).Add(-4 * time.Second), Calls: map[messages.Outcome]int{messages.OutcomeOK: 7}, P50: 3},
			{Seq: 903, At: step(2).Add(time.Second), Starts: 100}, // comes with the next one
		},
		Marks:    []client.Mark{{Key: key, Level: client.LevelBad}},
		Problems: []client.Problem{{Level: client.LevelBad, Kind: "died", Key: key, What: "It died."}, {Level: client.LevelShaky, Kind: "machine", What: "The machine is busy."}},
	}
	got := vitals.Together(own, map[string]client.Overview{"b": other})
	require.Equal(t, client.Overview{
		At: step(3), StepSeconds: 5, Newest: 12, Limits: client.Limits{Sessions: 72, CPUs: 6, Fork: true}, Hibernated: 3,
		Samples: []client.Sample{
			{Seq: 11, At: step(1), Sessions: map[messages.ChildState]int{messages.ChildIdle: 3}, Calls: map[messages.Outcome]int{}, P99: 9, CPU: 15, Deaths: 1},
			{Seq: 12, At: step(2), Sessions: map[messages.ChildState]int{}, Calls: map[messages.Outcome]int{messages.OutcomeOK: 7}, P50: 3},
		},
		Marks: []client.Mark{{Key: key, Level: client.LevelBad}},
		Problems: []client.Problem{
			{Level: client.LevelBad, Kind: "died", Key: key, What: "It died."},
			{Level: client.LevelShaky, Kind: "machine", What: "The machine is busy."},
			{Level: client.LevelShaky, Kind: "machine", What: "b: The machine is busy."},
		},
	}, got)
	require.Zero(t, own.Samples[0].Deaths, "those of the first are as they were")
	require.Equal(t, 1, own.Samples[0].Sessions[messages.ChildIdle])
}
