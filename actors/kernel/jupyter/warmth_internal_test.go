package jupyter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
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
			require.Equal(t, tc.kernels > 0, w.lazy, "what was not asked for waits until it is of use")
			require.Contains(t, w.why, tc.why)
		})
	}
}

// What the options say goes before what the machine allows.
func TestWarmByOptions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o    HostOptions
		max  int
		want int
	}{
		"so many":          {HostOptions{WarmKernels: 3}, 4, 3},
		"none":             {HostOptions{WarmKernels: -1}, 4, 0},
		"one session":      {HostOptions{}, 1, 0},
		"external gateway": {HostOptions{WarmKernels: 2, URL: "http://127.0.0.1:1"}, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := warmth(tc.o, kernel.Site{MaxSessions: tc.max})
			require.Equal(t, tc.want, w.kernels)
			require.False(t, w.lazy)
			require.NotEmpty(t, w.why)
		})
	}
}
