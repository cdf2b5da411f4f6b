package console

import (
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/sinks/budget"
)

// TestBounds: each flag reaches its option, and nothing else is changed.
func TestBounds(t *testing.T) {
	t.Parallel()
	type set = coppice.Options
	for name, tc := range map[string]struct {
		args []string
		want coppice.Options
	}{
		"none":       {nil, set{}},
		"memory":     {[]string{"--max-memory", "256M"}, set{Limits: coppice.Limits{Memory: 256 << 20}}},
		"cpu":        {[]string{"--max-cpu", "90s"}, set{Limits: coppice.Limits{CPU: 90 * time.Second}}},
		"runtime":    {[]string{"--max-runtime", "30"}, set{Limits: coppice.Limits{Runtime: 30 * time.Second}}},
		"files":      {[]string{"--max-files", "64"}, set{Limits: coppice.Limits{Files: 64}}},
		"processes":  {[]string{"--max-processes", "8"}, set{Limits: coppice.Limits{Processes: 8}}},
		"processors": {[]string{"--max-processors", "0.5"}, set{Limits: coppice.Limits{Processors: 0.5}}},
		"output":     {[]string{"--max-output", "100K"}, set{Output: coppice.OutputOptions{Budget: budget.Options{Bytes: 100 << 10}}}},
		"artifact":   {[]string{"--max-artifact", "2G"}, set{Output: coppice.OutputOptions{MaxArtifact: 2 << 30}}},
		"isolation":  {[]string{"--isolation", "off"}, set{Isolation: coppice.Isolation{Level: "off"}}},
		"all of it": {
			[]string{"--isolation", "bubblewrap", "--isolation-write", "a,b", "--isolation-write", "c", "--isolation-read", "d", "--isolation-network", "--isolation-users"},
			set{Isolation: coppice.Isolation{Level: "bubblewrap", Write: []string{"a,b", "c"}, Read: []string{"d"}, Network: true, Users: true}},
		},
	} {
		o, f, err := parse(t, nil, tc.args)
		require.NoError(t, err, name)
		require.Equal(t, tc.want, o, name)
		require.Equal(t, len(tc.args) > 0, f.Given(), name)
	}
	require.False(t, new(HostFlags).Given(), "a command without the flags")
}

// TestBadBounds are wrong command lines: each names its flag and the next step.
func TestBadBounds(t *testing.T) {
	t.Parallel()
	const size, count = "write it as 512M, 2G or a number of bytes", "write it as 1, 20 or 300"
	for _, tc := range []struct{ flag, value, want string }{
		{"max-memory", "much", size},
		{"max-memory", "0", size},
		{"max-cpu", "-1", "write it as 90s, 2m or a number of seconds"},
		{"max-runtime", "none", "write it as 90s, 2m or a number of seconds"},
		{"max-files", "1.5", count},
		{"max-processes", "0", count},
		{"max-processors", "NaN", "write it as 0.5, 1 or 2"},
		{"max-output", "3G", "write less than 2G"},
		{"max-artifact", "all", size},
		{"isolation", "firm", "must be one of off, privileges, landlock, seccomp, user, bubblewrap, gvisor, strongest"},
		{"isolation-write", "", "write . for the working directory"},
		{"isolation-write", "a", "add --isolation landlock or a stronger one"},
		{"isolation-read", "a", "add --isolation landlock or a stronger one"},
	} {
		_, _, err := parse(t, nil, []string{"--" + tc.flag, tc.value})
		_, usage := errors.AsType[UsageError](err)
		require.True(t, usage, tc)
		require.ErrorContains(t, err, "--"+tc.flag)
		require.ErrorContains(t, err, tc.want)
	}
	for _, more := range []string{"--isolation-network", "--isolation-loopback"} {
		_, _, err := parse(t, nil, []string{"--isolation", "seccomp", "--isolation-host", "a.example", more})
		_, usage := errors.AsType[UsageError](err)
		require.True(t, usage, more)
		require.ErrorContains(t, err, more)
	}
	_, _, err := parse(t, []string{"COPPICE_ISOLATION=off"}, []string{"--isolation-network"})
	require.ErrorContains(t, err, "add --isolation landlock or a stronger one")
	o, f, err := parse(t, []string{"COPPICE_ISOLATION=seccomp"}, []string{"--isolation-network"})
	require.NoError(t, err, "the variable names a rung")
	require.True(t, f.Walled(o.Env))
	filled, err := o.FromEnvironment()
	require.NoError(t, err)
	require.Equal(t, coppice.Isolation{Level: "seccomp", Network: true}, filled.Isolation)
	require.False(t, f.Walled(nil))
}

// TestCallTimeout is the time of calls that name none.
func TestCallTimeout(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 0, "90s": 90 * time.Second, "5m": 5 * time.Minute, "none": coppice.NoTimeout} {
		var o coppice.Options
		require.NoError(t, CallTimeout(text).Fill(&o), text)
		require.Equal(t, want, o.Timeout, text)
	}
	var o coppice.Options
	require.EqualError(t, CallTimeout("soon").Fill(&o), `--call-timeout: "soon" is no time; write it as 90s, 2m or a number of seconds, or none`)
	require.Zero(t, o.Timeout)
}

// parse returns the options of a command line, without those that other flags set.
func parse(t *testing.T, env, args []string) (coppice.Options, *HostFlags, error) {
	t.Helper()
	var f HostFlags
	cmd := &cobra.Command{}
	f.AddBounded(cmd)
	require.NoError(t, cmd.ParseFlags(args))
	o, err := f.Options(coppice.GatewayOptions{}, coppice.Options{Env: env})
	o.Backend = nil
	return o, &f, err
}
