package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/hibernate"
)

func TestHibernateFlag(t *testing.T) {
	for name, tc := range map[string]struct {
		flag, variable, backend string
		want                    hibernate.Policy
		wantBackend, problem    string
	}{
		"nothing":                 {backend: "auto", wantBackend: "auto"},
		"the flag":                {flag: "lossy", backend: "runner", want: hibernate.Lossy, wantBackend: "runner"},
		"the variable":            {variable: "lossless", backend: "auto", want: hibernate.Lossless, wantBackend: "runner"},
		"the flag comes first":    {flag: "never", variable: "lossy", backend: "gateway", want: hibernate.Never, wantBackend: "gateway"},
		"another word":            {flag: "always", backend: "runner", problem: `--hibernate must be one of never, lossless, lossy, not "always"`},
		"another in the variable": {variable: "1", backend: "runner", problem: `COPPICE_HIBERNATE must be one of never, lossless, lossy, not "1"`},
		"the gateway":             {flag: "lossy", backend: "gateway", problem: "--hibernate lossy: the gateway backend cannot keep sessions on disk; use --backend runner, or --hibernate never"},
		"the gateway, variable":   {variable: "lossy", backend: "gateway", problem: "COPPICE_HIBERNATE lossy: the gateway backend cannot keep sessions on disk; use --backend runner, or --hibernate never"},
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
	}
}
