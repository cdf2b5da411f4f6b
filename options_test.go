package coppice_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

func TestOptionsThatAreWrongAreNamed(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]coppice.Options{
		`the kernel mode "for-ever"`:        {KernelMode: "for-ever"},
		`the brand "../x"`:                  {Brand: "../x"},
		"negative":                          {MaxSessions: -1},
		"GatewayOptions.Kernels is \"151\"": {Backend: coppice.Gateway(coppice.GatewayOptions{Kernels: 151})},
		"GatewayOptions.Idle is negative":   {Backend: coppice.Auto(coppice.Gateway(coppice.GatewayOptions{Idle: -1}))},
		"KeepSessions needs":                {Backend: coppice.Gateway(coppice.GatewayOptions{}), KeepSessions: true},
		"GatewayOptions.URL":                {Backend: coppice.Gateway(coppice.GatewayOptions{URL: "ftp://x"})},
		"a nil backend":                     {Backend: coppice.Auto(nil)},
		"KERNELS is \"many\"":               {Env: []string{"COPPICE_GATEWAY_KERNELS=many"}},
		"NO_FORK is \"yes\"":                {Env: []string{"COPPICE_GATEWAY_NO_FORK=yes"}},
		`the replay policy "twice"`:         {Replay: "twice"},
		"151 sessions":                      {MaxSessions: 151, Backend: coppice.Gateway(coppice.GatewayOptions{})},
	} {
		o.Home = t.TempDir()
		host, err := coppice.Start(t.Context(), o)
		require.Nil(t, host)
		require.ErrorIs(t, err, coppice.ErrOptions)
		require.ErrorContains(t, err, want)
	}
}

// TestOptionsSettle holds defaults, checks and the environment apart: none does the
// work of another.
func TestOptionsSettle(t *testing.T) {
	t.Setenv("PI_ARTIFACTS_DIR", "/from/the/process")
	o := coppice.Options{Env: []string{"PI_PYTHON_GATEWAY_URL=ftp://x", "PI_ARTIFACTS_DIR=/a"}, Home: "/home/me", IdleTTL: -1, Timeout: -5}
	require.NoError(t, o.Validate(), "what variables say is not looked at")

	full := o.WithDefaults()
	require.Empty(t, full.Output.Artifacts)
	require.Equal(t, coppice.NoTimeout, full.Timeout)
	require.Greater(t, full.IdleTTL, 10_000*time.Hour)
	require.Equal(t, "auto", full.Backend.Name())
	require.Equal(t, 10_000, full.HostCalls.MaxCalls)
	require.NoError(t, full.Validate())
	again := full.WithDefaults()
	again.Backend, full.Backend = nil, nil
	require.Equal(t, full, again, "defaults have defaults")

	filled, err := o.FromEnvironment()
	require.NoError(t, err)
	require.Equal(t, "/a", filled.Output.Artifacts)
	require.Zero(t, filled.MaxSessions, "defaults are not its business")
	require.ErrorContains(t, filled.Validate(), "COPPICE_PYTHON_GATEWAY_URL or GatewayOptions.URL")
	require.ErrorIs(t, filled.Validate(), coppice.ErrOptions)

	o.Env = append(o.Env, "COPPICE_START_TIMEOUT=90", "COPPICE_INTERRUPT_GRACE=4s")
	filled, err = o.FromEnvironment()
	require.NoError(t, err)
	require.Equal(t, 90*time.Second, filled.StartTimeout)
	require.Equal(t, 4*time.Second, filled.InterruptGrace)
	require.Equal(t, 450*time.Second, filled.WithDefaults().StartCeiling)
	o.StartTimeout = time.Second
	filled, err = o.FromEnvironment()
	require.NoError(t, err)
	require.Equal(t, time.Second, filled.StartTimeout, "an option comes before its variable")
	o.Env = append(o.Env, "COPPICE_INTERRUPT_GRACE=soon")
	_, err = o.FromEnvironment()
	require.ErrorIs(t, err, coppice.ErrOptions)
	require.ErrorContains(t, err, `COPPICE_INTERRUPT_GRACE: "soon" is no time`)
	o.Env = o.Env[:2]

	o.Backend = coppice.Gateway(coppice.GatewayOptions{URL: "http://127.0.0.1:1"})
	filled, err = o.FromEnvironment()
	require.NoError(t, err)
	require.NoError(t, filled.Validate(), "an option comes before its variable")
}

// TestBoundsFromTheEnvironment: limits, the budget of output, the time of calls and the
// isolation are what variables say, where the program has said nothing.
func TestBoundsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	env := []string{
		"HOME=" + t.TempDir(), "COPPICE_CALL_TIMEOUT=none", "COPPICE_MAX_MEMORY=256M", "COPPICE_MAX_CPU=5", "COPPICE_MAX_RUNTIME=1m",
		"COPPICE_MAX_FILES=64", "COPPICE_MAX_PROCESSES=8", "COPPICE_MAX_PROCESSORS=0.5", "COPPICE_MAX_OUTPUT=100K", "COPPICE_MAX_ARTIFACT=1G",
		"COPPICE_ISOLATION=landlock", "COPPICE_ISOLATION_WRITE=a" + string(filepath.ListSeparator) + "b", "COPPICE_ISOLATION_READ=c",
		"COPPICE_ISOLATION_NETWORK=1", "COPPICE_ISOLATION_USERS=0", "COPPICE_ISOLATION_LOOPBACK=1", "COPPICE_ISOLATION_HOSTS=a.example, *.b.example:8443",
	}
	o, err := coppice.Options{Env: env}.FromEnvironment()
	require.NoError(t, err)
	require.Equal(t, coppice.NoTimeout, o.Timeout)
	require.Equal(t, coppice.Limits{Memory: 256 << 20, CPU: 5 * time.Second, Runtime: time.Minute, Files: 64, Processes: 8, Processors: 0.5}, o.Limits)
	require.Equal(t, 100<<10, o.Output.Budget.Bytes)
	require.EqualValues(t, 1<<30, o.Output.MaxArtifact)
	require.Equal(t, coppice.Isolation{Level: "landlock", Write: []string{"a", "b"}, Read: []string{"c"}, Network: true, Loopback: true, Hosts: []string{"a.example", "*.b.example:8443"}}, o.Isolation)

	own := coppice.Options{Env: env, Timeout: time.Second, Limits: coppice.Limits{Memory: 1}, Isolation: coppice.Isolation{Level: "seccomp"}}
	filled, err := own.FromEnvironment()
	require.NoError(t, err)
	require.Equal(t, time.Second, filled.Timeout)
	require.EqualValues(t, 1, filled.Limits.Memory)
	require.Equal(t, 8, filled.Limits.Processes)
	require.Equal(t, own.Isolation, filled.Isolation, "an isolation that was chosen is not loosened")

	for variable, want := range map[string]string{
		"COPPICE_MAX_MEMORY=0":    `COPPICE_MAX_MEMORY: "0" is no size`,
		"COPPICE_ISOLATION=firm":  `COPPICE_ISOLATION: the isolation "firm" is not one of off, privileges, landlock`,
		"COPPICE_CALL_TIMEOUT=-1": `COPPICE_CALL_TIMEOUT: "-1" is no time`,
	} {
		_, err := coppice.Options{Env: []string{env[0], variable}}.FromEnvironment()
		require.ErrorIs(t, err, coppice.ErrOptions)
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, coppice.Options{Isolation: coppice.Isolation{Level: "firm"}}.Validate(), "is not one of off")
}

// TestBackendNamed makes the backend that a flag names, or says what is wrong.
func TestBackendNamed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "auto", "auto": "auto", "gateway": "gateway", "runner": "runner"} {
		b, err := coppice.BackendNamed(name, coppice.GatewayOptions{}, coppice.RunnerOptions{})
		require.NoError(t, err)
		require.Equal(t, want, b.Name())
	}
	_, err := coppice.BackendNamed("docker", coppice.GatewayOptions{}, coppice.RunnerOptions{})
	require.EqualError(t, err, `invalid options: the backend "docker" is not one of auto, gateway, runner`)
	_, err = coppice.BackendNamed("runner", coppice.GatewayOptions{KernelName: "ir"}, coppice.RunnerOptions{})
	require.ErrorContains(t, err, "use the gateway backend")
	require.ErrorIs(t, err, coppice.ErrOptions)
}

// bare is a host without any Python: what it can do without a kernel.
func bare(t *testing.T) *coppice.Host {
	t.Helper()
	host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Env: []string{"PATH=" + t.TempDir()}})
	require.NoError(t, err)
	t.Cleanup(func() { require.True(t, host.Shutdown(context.Background()).Clean()) })
	return host
}

func TestRequestsThatCannotBeMadeAreRefused(t *testing.T) {
	t.Parallel()
	host := bare(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	one := []messages.Cell{{Code: "1"}}
	for field, tc := range map[string]struct {
		cwd  string
		req  coppice.Request
		want string
	}{
		"timeout": {dir, coppice.Request{Timeout: -time.Second}, "negative"},
		"mode":    {dir, coppice.Request{Mode: "x"}, `"x"`},
		"cells":   {dir, coppice.Request{Cells: []messages.Cell{{Code: "\xff"}}}, "cell 1 is not valid UTF-8"},
		"env":     {dir, coppice.Request{Env: map[string]string{"": "x"}}, "environment variable"},
		"cwd":     {file, coppice.Request{Cells: one}, "Working directory is not a directory: " + file},
	} {
		r, err := host.Session("", coppice.In(tc.cwd)).Execute(t.Context(), tc.req)
		var bad *coppice.RequestError
		require.ErrorAs(t, err, &bad, field)
		require.Equal(t, field, bad.Field)
		require.ErrorContains(t, err, tc.want)
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		require.Contains(t, r.Text, tc.want)
	}
	_, err := host.Session("", coppice.In(filepath.Join(dir, "none"))).Execute(t.Context(), coppice.Request{})
	require.ErrorContains(t, err, "Working directory does not exist: ")
}

func TestWithoutPythonACallSaysSo(t *testing.T) {
	t.Parallel()
	r, err := bare(t).Session("").Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "1"}}})
	var refused *messages.NotStartedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, messages.RefusedStart, refused.Refusal)
	require.Empty(t, r.State)
	require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
	require.Contains(t, r.Text, "Python")
}

func TestAfterShutdownEverythingIsClosed(t *testing.T) {
	t.Parallel()
	host := bare(t)
	first := host.Shutdown(t.Context())
	require.Equal(t, first, host.Shutdown(t.Context()))
	s := host.Session("")
	r, err := s.Execute(t.Context(), coppice.Request{})
	require.ErrorIs(t, err, coppice.ErrClosed)
	require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
	_, err = host.Snapshot(t.Context())
	require.ErrorIs(t, err, coppice.ErrClosed)
	require.ErrorIs(t, s.Interrupt(), coppice.ErrClosed)
	require.ErrorIs(t, s.Reset(t.Context()), coppice.ErrClosed)
	require.ErrorIs(t, s.Pin(t.Context(), true), coppice.ErrClosed)
	require.ErrorIs(t, s.Close(t.Context()), coppice.ErrClosed)
	for _, err := range s.Stream(t.Context(), coppice.Request{}) {
		require.ErrorIs(t, err, coppice.ErrClosed)
	}
}

// What may pass to kernels is named by the option, by the variable, or by both.
func TestPassEnv(t *testing.T) {
	t.Parallel()
	o := coppice.Options{Home: t.TempDir(), Env: []string{"PATH=" + t.TempDir(), "TZ=UTC", "CUDA_HOME=/c", "NODE=x", "COPPICE_PASS_ENV=CUDA_*"}, PassEnv: []string{"TZ"}}
	r, err := coppice.Environment(t.Context(), o, "")
	require.NoError(t, err)
	require.Subset(t, r.Passed, []string{"TZ", "CUDA_HOME"})
	require.Contains(t, r.Withheld, "NODE")
	for _, wrong := range []string{"", "*", "A=b", "A B", "A,B"} {
		require.ErrorIs(t, coppice.Options{PassEnv: []string{wrong}}.Validate(), coppice.ErrOptions, wrong)
	}
}

func TestEnvironmentExplainsItself(t *testing.T) {
	t.Parallel()
	r, err := coppice.Environment(t.Context(), coppice.Options{Home: t.TempDir(), Env: []string{"PATH=" + t.TempDir(), "HOME=/h", "OPENAI_API_KEY=x", "PI_PYTHON_GATEWAY_TOKEN=y"}}, "")
	require.NoError(t, err)
	require.Nil(t, r.Python)
	require.NotEmpty(t, r.Problem)
	require.NotEmpty(t, r.Steps)
	require.Contains(t, r.Passed, "HOME")
	require.ElementsMatch(t, []string{"OPENAI_API_KEY", "PI_PYTHON_GATEWAY_TOKEN"}, r.Withheld)
}
