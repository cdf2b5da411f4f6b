package coppice_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
)

// TestOneChoiceOfTheBackend asks everything that tells which backend a host runs
// on: they agree.
func TestOneChoiceOfTheBackend(t *testing.T) {
	t.Parallel()
	python := testpython.Path(t)
	nothing := []string{"PATH=" + t.TempDir()}
	for name, tc := range map[string]struct {
		o             coppice.Options
		s             environment.Settings
		reports, host string
		why           string
	}{
		"a named one":         {coppice.Options{Env: nothing}, environment.Settings{Backend: "runner"}, "runner", "runner", "it was asked for"},
		"an external gateway": {coppice.Options{Env: nothing}, environment.Settings{GatewayURL: "http://127.0.0.1:1"}, "gateway", "gateway", "an external gateway is set"},
		"a kernel":            {coppice.Options{Env: nothing}, environment.Settings{KernelName: "ir"}, "gateway", "gateway", "a kernel was named"},
		"no check":            {coppice.Options{Env: append([]string{"PI_PYTHON_SKIP_CHECK=1"}, nothing...)}, environment.Settings{}, "gateway", "gateway", "PI_PYTHON_SKIP_CHECK is set: its packages are assumed to be installed"},
		"the packages are in": {coppice.Options{Python: python, Env: nothing}, environment.Settings{}, "gateway", "gateway", "jupyter_kernel_gateway or jupyter_server, and ipykernel, are importable"},
		"no Python":           {coppice.Options{Env: nothing}, environment.Settings{}, "", "runner", "no Python interpreter can be used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.Home = t.TempDir()
			var err error
			tc.o.Backend, err = coppice.BackendNamed(tc.s.Backend, coppice.GatewayOptions{URL: tc.s.GatewayURL, KernelName: tc.s.KernelName, WarmKernels: -1}, coppice.RunnerOptions{})
			require.NoError(t, err)
			report, err := coppice.Environment(t.Context(), tc.o, "")
			require.NoError(t, err)
			require.Equal(t, [2]string{tc.reports, tc.why}, [2]string{report.Backend, report.BackendWhy})
			tc.s.Home, tc.s.Env = tc.o.Home, tc.o.Env
			plan, err := coppice.Trial{}.Plan(tc.s, report.Err())
			require.NoError(t, err)
			require.Equal(t, [2]string{tc.reports, tc.why}, [2]string{plan.Backend, plan.Why})
			require.NotEmpty(t, plan.Warm)
			host, err := coppice.Start(t.Context(), tc.o)
			require.NoError(t, err)
			backend, why := host.Backend()
			require.Equal(t, [2]string{tc.host, tc.why}, [2]string{backend, why})
			require.True(t, host.Shutdown(t.Context()).Clean())
		})
	}
	plan, err := coppice.Trial{}.Plan(environment.Settings{Env: nothing}, &environment.MissingPackagesError{})
	require.NoError(t, err)
	require.Equal(t, "runner", plan.Backend)
	require.Equal(t, "the gateway's packages are missing; coppice setup installs them", plan.Why)
	plan, err = coppice.Trial{}.Plan(environment.Settings{Env: nothing}, errors.New("it does not answer"))
	require.NoError(t, err)
	require.Equal(t, "runner", plan.Backend)
	require.Equal(t, "a gateway cannot be started: it does not answer", plan.Why)
}

// TestTrial runs a cell on a host that ends with it.
func TestTrial(t *testing.T) {
	t.Parallel()
	s := environment.Settings{Home: t.TempDir(), Python: testpython.Path(t), Backend: backends.Runner, Cage: &environment.Cage{Write: []string{t.TempDir()}}}
	tried, err := coppice.Trial{}.Run(t.Context(), s, environment.Cell{Session: "t", Cwd: s.Cage.Write[0], Code: "display({'application/json': [6 * 7]}, raw=True)", Timeout: coppice.NoTimeout})
	require.NoError(t, err)
	require.True(t, tried.OK, tried.Text)
	require.JSONEq(t, "[42]", string(tried.JSON))
	require.NoError(t, errors.Join(tried.Err, tried.ForksErr))
	require.Empty(t, tried.Left)
	require.Positive(t, tried.Took)
	require.NotEmpty(t, tried.Level)
	require.Equal(t, !tried.Forks, tried.NoFork != "")

	s.Cage = nil
	tried, err = coppice.Trial{}.Run(t.Context(), s, environment.Cell{Session: "t", Code: "1 / 0"})
	require.NoError(t, err)
	require.NoError(t, tried.Err)
	require.False(t, tried.OK)
	require.Contains(t, tried.Text, "ZeroDivisionError")
	tried, err = coppice.Trial{}.Run(t.Context(), s, environment.Cell{Session: "t", Cwd: "/no/such/folder"})
	require.NoError(t, err)
	require.ErrorAs(t, tried.Err, new(*coppice.RequestError))

	s.Python = "/no/such/python"
	tried, err = coppice.Trial{}.Run(t.Context(), s, environment.Cell{Session: "t", Code: "1"})
	require.NoError(t, err)
	require.NoError(t, tried.Err)
	require.False(t, tried.OK)
	require.Contains(t, tried.Text, "/no/such/python")

	s.Backend = "steam"
	_, err = coppice.Trial{}.Run(t.Context(), s, environment.Cell{})
	require.ErrorIs(t, err, coppice.ErrOptions)
	_, err = environment.Doctor(t.Context(), environment.DoctorOptions{Settings: s, Trial: coppice.Trial{}})
	require.ErrorIs(t, err, coppice.ErrOptions)
}
