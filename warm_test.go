package coppice

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWarmOn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		processors int
		free       uint64
		kernels    int
		why        string
	}{
		"few processors":         {2, 64 << 30, 0, "2 are there"},
		"little memory":          {8, 1 << 30, 0, "1024 MiB of memory is free"},
		"enough":                 {4, 2 << 30, 1, "4 processors"},
		"memory that is unknown": {8, 0, 1, "one waits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := warmOn(tc.processors, tc.free)
			require.Equal(t, tc.kernels, w.kernels)
			require.Equal(t, tc.kernels > 0, w.lazy, "what nobody asked for waits until it is of use")
			require.Contains(t, w.why, tc.why)
		})
	}
}

// What the options say goes before what the machine allows.
func TestWarmByOptions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o    Options
		want int
	}{
		"so many":          {Options{WarmKernels: 3}, 3},
		"none":             {Options{WarmKernels: -1}, 0},
		"one session":      {Options{MaxSessions: 1}, 0},
		"external gateway": {Options{WarmKernels: 2, GatewayURL: "http://127.0.0.1:1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.Home = t.TempDir()
			r, err := tc.o.resolve()
			require.NoError(t, err)
			w := r.warm()
			require.Equal(t, tc.want, w.kernels)
			require.False(t, w.lazy)
			require.NotEmpty(t, w.why)
		})
	}
}
