package cli

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/hibernate"
)

func TestHibernateFlag(t *testing.T) {
	for name, tc := range map[string]struct {
		flag, variable, backend string
		want                    hibernate.Policy
		wantBackend, problem    string
		chosen                  string
	}{
		"nothing":                  {backend: "auto", wantBackend: "auto"},
		"the flag":                 {flag: "lossy", backend: "runner", want: hibernate.Lossy, wantBackend: "runner"},
		"the variable":             {variable: "lossless", backend: "auto", want: hibernate.Lossless, wantBackend: "runner", chosen: "COPPICE_HIBERNATE takes the runner backend where none is named"},
		"the flag, and no backend": {flag: "lossy", backend: "auto", want: hibernate.Lossy, wantBackend: "runner", chosen: "--hibernate takes the runner backend where none is named"},
		"the flag comes first":     {flag: "never", variable: "lossy", backend: "gateway", want: hibernate.Never, wantBackend: "gateway"},
		"another word":             {flag: "always", backend: "runner", problem: `--hibernate must be one of never, lossless, lossy, not "always"`},
		"another in the variable":  {variable: "1", backend: "runner", problem: `COPPICE_HIBERNATE must be one of never, lossless, lossy, not "1"`},
		"the gateway":              {flag: "lossy", backend: "gateway", want: hibernate.Lossy, wantBackend: "gateway"},
		"the gateway, variable":    {variable: "lossy", backend: "gateway", want: hibernate.Lossy, wantBackend: "gateway"},
	} {
		f, o := console.HostFlags{Backend: tc.backend}, coppice.Options{}
		err := hibernation(tc.flag).fill([]string{"COPPICE_HIBERNATE=" + tc.variable}, &f, &o)
		if tc.problem != "" {
			require.EqualError(t, err, tc.problem, name)
			require.ErrorAs(t, err, &console.UsageError{}, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, tc.want, o.Hibernate, name)
		require.Equal(t, tc.wantBackend, f.Backend, name)
		require.Equal(t, tc.chosen, f.Chosen, name)
	}
}

// TestSavedBounds are those of the server's host, and of each tenant's.
func TestSavedBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		flags   []string
		most    int
		age     time.Duration
		kept    bool
		problem string
	}{
		"a bound of none": {flags: []string{"--max-saved-checkpoints", "7"}, problem: "--max-saved-checkpoints is for --hibernate: without that, no checkpoint is on disk"},
		"an age of none":  {flags: []string{"--keep-checkpoints-for", "1h"}, problem: "--keep-checkpoints-for is for --hibernate: without that, no checkpoint is on disk"},
		"nothing":         {most: hibernate.UsualSaved},
		"both":            {flags: []string{"--max-saved-checkpoints", "7", "--keep-checkpoints-for", "720h"}, most: 7, age: 720 * time.Hour},
		"no bounds":       {flags: []string{"--max-saved-checkpoints=-1", "--keep-checkpoints-for=-1s"}, most: -1, age: -time.Second},
		"none at all":     {flags: []string{"--max-saved-checkpoints", "0"}, problem: "--max-saved-checkpoints must be at least 1, or -1 for any number"},
	} {
		var f serveFlags
		var cmd cobra.Command
		f.saved.add(&cmd)
		require.NoError(t, cmd.ParseFlags(tc.flags), name)
		if tc.problem != "" {
			require.EqualError(t, f.saved.check(tc.kept), tc.problem, name)
			continue
		}
		require.NoError(t, f.saved.check(true), name)
		o := f.hostOptions(newMetrics(version.Info{}), vitals.New())
		require.Equal(t, tc.most, o.MaxSavedCheckpoints, name)
		require.Equal(t, tc.age, o.SavedCheckpointAge, name)
	}
}
