package scenario

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWarnings(t *testing.T) {
	large := machine{files: 1 << 20, pids: 1 << 22, memory: 512 << 30, cpus: 64}
	for name, tc := range map[string]struct {
		o    Setup
		m    machine
		want []string
	}{
		"all is well":    {Setup{Backend: "runner", Sessions: 5000, Rate: 300}, large, nil},
		"descriptors":    {Setup{Backend: "runner", Sessions: 1000}, machine{1024, 1 << 22, 512 << 30, 64}, []string{"ulimit -n"}},
		"processes":      {Setup{Backend: "gateway", Sessions: 100}, machine{1 << 20, 1000, 512 << 30, 64}, []string{"pid_max"}},
		"memory":         {Setup{Backend: "gateway", Sessions: 100}, machine{1 << 20, 1 << 22, 1 << 30, 64}, []string{"6000 MiB"}},
		"calls":          {Setup{Backend: "runner", Sessions: 1, Rate: 1e6}, large, []string{"--rate"}},
		"nothing known":  {Setup{Backend: "runner", Sessions: 1 << 20}, machine{-1, -1, -1, 1}, nil},
		"two at once":    {Setup{Backend: "runner", Sessions: 100_000}, machine{1024, 1000, 512 << 30, 64}, []string{"ulimit -n", "pid_max"}},
		"only pretended": {Setup{Backend: Fake, Sessions: 10_000}, machine{1024, 1000, 4 << 30, 2}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.o.warnings(tc.m)
			require.Len(t, got, len(tc.want), strings.Join(got, "\n"))
			for i, w := range tc.want {
				require.Contains(t, got[i], w)
			}
		})
	}
	require.Empty(t, Warnings(Setup{Backend: "runner", Sessions: 1}))
}
