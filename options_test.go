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
		`the backend "docker"`:       {Backend: "docker"},
		`the kernel mode "for-ever"`: {KernelMode: "for-ever"},
		`the brand "../x"`:           {Brand: "../x"},
		"negative":                   {MaxSessions: -1},
		"GatewayKernels is \"151\"":  {GatewayKernels: 151},
		"KERNELS is \"many\"":        {Env: []string{"COPPICE_GATEWAY_KERNELS=many"}},
		`the replay policy "twice"`:  {Replay: "twice"},
		"151 sessions":               {MaxSessions: 151, Backend: coppice.BackendGateway},
	} {
		o.Home = t.TempDir()
		host, err := coppice.Start(t.Context(), o)
		require.Nil(t, host)
		require.ErrorIs(t, err, coppice.ErrOptions)
		require.ErrorContains(t, err, want)
	}
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
	require.ErrorIs(t, s.Interrupt(t.Context()), coppice.ErrClosed)
	require.ErrorIs(t, s.Reset(t.Context()), coppice.ErrClosed)
	require.ErrorIs(t, s.Pin(t.Context(), true), coppice.ErrClosed)
	require.ErrorIs(t, s.Close(t.Context()), coppice.ErrClosed)
	for _, err := range s.Stream(t.Context(), coppice.Request{}) {
		require.ErrorIs(t, err, coppice.ErrClosed)
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
