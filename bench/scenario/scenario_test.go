package scenario_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/bench/scenario"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a load that shows that a scenario works, not how fast.
func small(t *testing.T, name, backend string) scenario.Setup {
	o := scenario.Setup{Backend: backend, Home: t.TempDir(), Sessions: 3, Rate: 20, Duration: 200 * time.Millisecond}
	switch {
	case backend == scenario.Fake:
		o.Sessions, o.Rate = 50, 500
		return o
	case name == "fork", name == "hibernate", name == "interrupt":
		o.Sessions = 1
	case name == "flood":
		o.Sessions, o.Duration = 1, 50*time.Millisecond
	case name == "soak":
		o.Rate, o.Duration = 10, 500*time.Millisecond
	}
	o.Python = testpython.Path(t)
	return o
}

func TestEveryScenarioRuns(t *testing.T) {
	for _, s := range scenario.All() {
		for _, backend := range s.Backends {
			if backend == backends.Gateway && s.Name != "exec" && s.Name != "crashy" {
				continue // the same code; a kernel takes a second to start
			}
			t.Run(s.Name+"/"+backend, func(t *testing.T) {
				if backend == backends.Gateway {
					o := small(t, s.Name, backend)
					o.Sessions, o.Rate, o.Duration = 2, 30, 500*time.Millisecond
					check(t, s, o)
					return
				}
				check(t, s, small(t, s.Name, backend))
			})
		}
	}
}

func check(t *testing.T, s scenario.Scenario, o scenario.Setup) {
	r, err := s.Run(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%s/%s/%d", s.Name, o.Backend, o.Sessions), r.Name())
	require.NotEmpty(t, r.Metrics)
	require.Empty(t, r.Error)
	if n, ok := r.Metric("calls"); ok {
		require.Positive(t, n)
	}
	for _, m := range r.Metrics {
		require.NotEmpty(t, m.Name)
		require.NotEmpty(t, m.Better)
	}
}

func TestASetupThatCannotBeIsRefused(t *testing.T) {
	_, err := scenario.Find("nothing")
	require.ErrorIs(t, err, scenario.ErrSetup)
	require.ErrorContains(t, err, "hostcalls")
	fork, err := scenario.Find("fork")
	require.NoError(t, err)
	exec, err := scenario.Find("exec")
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		s    scenario.Scenario
		o    scenario.Setup
		text string
	}{
		"backend":   {fork, scenario.Setup{Backend: "gateway"}, "only on [runner]"},
		"sessions":  {exec, scenario.Setup{Sessions: -1}, "at least one"},
		"kernels":   {exec, scenario.Setup{Backend: "gateway", Sessions: 151}, "150"},
		"duration":  {exec, scenario.Setup{Duration: -1}, "negative"},
		"unknown":   {exec, scenario.Setup{Backend: "moon"}, "moon"},
		"slowdown":  {exec, scenario.Setup{Plant: -.1}, "negative"},
		"call rate": {exec, scenario.Setup{Rate: -1}, "negative"},
		"no rate":   {exec, scenario.Setup{Rate: math.NaN()}, "calls that fit"},
		"all calls": {exec, scenario.Setup{Rate: math.Inf(1)}, "calls that fit"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := tc.s.Run(t.Context(), tc.o)
			require.ErrorIs(t, err, scenario.ErrSetup)
			require.ErrorContains(t, err, tc.text)
			require.Equal(t, err.Error(), r.Error)
		})
	}
}

// A run that is cancelled ends soon, says so, and leaves nothing.
func TestACancelledRunEnds(t *testing.T) {
	exec, err := scenario.Find("exec")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := exec.Run(ctx, scenario.Setup{Backend: scenario.Fake, Sessions: 10, Rate: 100, Duration: time.Hour, Progress: func(string) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, r.Error)
}

// A slowdown that is planted is in the figures.
func TestAPlantedSlowdownIsMeasured(t *testing.T) {
	exec, err := scenario.Find("exec")
	require.NoError(t, err)
	o := scenario.Setup{Backend: scenario.Fake, Sessions: 10, Rate: 200, Duration: 300 * time.Millisecond}
	plain, err := exec.Run(t.Context(), o)
	require.NoError(t, err)
	o.Plant = 20
	slow, err := exec.Run(t.Context(), o)
	require.NoError(t, err)
	before, _ := plain.Metric("back-to-back-p50")
	after, _ := slow.Metric("back-to-back-p50")
	require.Greater(t, after, 3*before)
}
