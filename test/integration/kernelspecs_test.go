//go:build linux

package integration_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/external"
	"github.com/coppice-run/coppice/workspace"
)

// TestSessionsNameTheirKernels has kernels of three kernelspecs on one host: IPython and another
// language of its gateway, and sessions of the runner beside it.
func TestSessionsNameTheirKernels(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: coppice.Gateway(coppice.GatewayOptions{}), Beside: coppice.Runner(coppice.RunnerOptions{}), Env: external.WithToy(t)})
	specs, err := host.Kernelspecs(t.Context())
	require.NoError(t, err)
	require.Equal(t, "python3", specs[0].Name)
	has := map[string]coppice.Kernelspec{}
	for _, s := range specs {
		has[s.Name] = s
	}
	require.Len(t, has, len(specs))
	require.Equal(t, coppice.Kernelspec{Name: "toy", DisplayName: "Toy", Language: "toy", Backend: "gateway"}, has["toy"])
	require.Equal(t, "runner", has["coppice"].Backend)
	require.Equal(t, "gateway", has["python3"].Backend)

	dir := t.TempDir()
	on := func(kernel string) *coppice.Session {
		return host.Session("a", coppice.In(dir), coppice.OnKernel(kernel))
	}
	require.Equal(t, messages.OutcomeOK, run(t, on(""), cells("n = 1; get_ipython()")).Outcome)
	require.Contains(t, run(t, on("python3"), cells("n")).Text, "1", "it is the same session")
	r := run(t, on("toy"), cells("count", "n = 2"))
	require.Equal(t, messages.StateFresh, r.State)
	require.Equal(t, "1", strings.TrimSpace(r.Cells[0].Output))
	require.Equal(t, "3", strings.TrimSpace(run(t, on("toy"), cells("count")).Cells[0].Output))
	r = run(t, on("coppice"), cells("n"))
	require.Equal(t, "NameError", r.Cells[0].Error.Name, "it is another session")
	require.Equal(t, messages.OutcomeOK, run(t, on("coppice"), cells("n = 3; __coppice__")).Outcome)
	r = run(t, on("nope"), cells("1"))
	require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
	require.Contains(t, r.Text, `no kernel called "nope"`)
	require.NotContains(t, r.Text, "/api/kernels", "that is no matter of who made the call")
	require.Equal(t, messages.RefusedRequest, r.Refusal)
	require.Equal(t, messages.RemedyRequest, r.Remedy)

	// What a session can do is what its own backend can.
	copies, err := on("coppice").Fork(t.Context(), coppice.ForkOptions{})
	require.NoError(t, err)
	require.Equal(t, "coppice", copies[0].Key().Kernel)
	require.Contains(t, run(t, copies[0], cells("n")).Text, "3")
	_, err = on("toy").Fork(t.Context(), coppice.ForkOptions{})
	require.Error(t, err)

	live, err := host.Sessions(t.Context())
	require.NoError(t, err)
	kernels := map[string]int{}
	for _, s := range live {
		kernels[s.Key.Kernel]++
	}
	require.Equal(t, map[string]int{"": 1, "toy": 1, "coppice": 2}, kernels)
	require.NoError(t, on("toy").Reset(t.Context()))
	require.Equal(t, "1", strings.TrimSpace(run(t, on("toy"), cells("count")).Cells[0].Output))
	require.NoError(t, on("toy").Close(t.Context()))
	require.Equal(t, messages.StateKept, run(t, on(""), cells("n")).State)

	// In a workspace whose kernels are those of the host, all of them; in one that has its own, none of the other backend.
	_, err = host.Workspace(t.Context(), "w", workspace.Options{})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, run(t, host.Session("a", coppice.InWorkspace("w"), coppice.OnKernel("coppice")), cells("__coppice__")).Outcome)
	require.Equal(t, messages.OutcomeOK, run(t, host.Session("a", coppice.InWorkspace("w"), coppice.OnKernel("toy")), cells("count")).Outcome)
	_, err = host.Workspace(t.Context(), "own", workspace.Options{Pass: []string{"XDG_DATA_HOME"}})
	require.NoError(t, err)
	_, err = host.Session("a", coppice.InWorkspace("own"), coppice.OnKernel("coppice")).Execute(t.Context(), cells("1"))
	require.ErrorContains(t, err, `for kernels of the gateway backend: "coppice" is none of them`)
	// Such a kernel has no process that is known: it ends before the gateway of its workspace does.
	require.Equal(t, messages.OutcomeOK, run(t, host.Session("a", coppice.InWorkspace("own"), coppice.OnKernel("toy")), cells("count")).Outcome)
}

// TestTheRunnerHasOneKernelspec, with two names; others are refused before anything starts.
func TestTheRunnerHasOneKernelspec(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Beside: coppice.Runner(coppice.RunnerOptions{})})
	specs, err := host.Kernelspecs(t.Context())
	require.NoError(t, err)
	require.Len(t, specs, 2)
	require.Equal(t, "python3", specs[0].Name)
	dir := t.TempDir()
	run(t, host.Session("a", coppice.In(dir)), cells("n = 1"))
	for _, name := range []string{"", "python3", "coppice"} {
		require.Contains(t, run(t, host.Session("a", coppice.In(dir), coppice.OnKernel(name)), cells("n")).Text, "1", name)
	}
	_, err = host.Session("a", coppice.OnKernel("ir")).Execute(t.Context(), cells("1"))
	require.ErrorContains(t, err, `"ir" is no kernel of this host`)
	var wrong *coppice.RequestError
	require.ErrorAs(t, err, &wrong)
	for _, name := range []string{"a b", "../x", "a/b", "a@b", strings.Repeat("a", 129)} {
		_, err = host.Session("a", coppice.OnKernel(name)).Execute(t.Context(), cells("1"))
		require.ErrorAs(t, err, &wrong, name)
		require.ErrorContains(t, err, "is not the name of a kernelspec")
	}
}
