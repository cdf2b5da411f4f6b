//go:build linux

package integration_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/external"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

// startExternal makes a host that uses a server which is there. At the end of
// the test, nothing but the server is left.
func startExternal(t *testing.T, s *external.Server, url, kernel string, o coppice.Options) *coppice.Host {
	t.Helper()
	o.Home = t.TempDir()
	o.Backend = coppice.Auto(coppice.Gateway(coppice.GatewayOptions{URL: url, Token: s.Token, KernelName: kernel}), coppice.Runner(coppice.RunnerOptions{}))
	if o.Env == nil {
		o.Env = append(os.Environ(), "KERNEL_USERNAME=somebody")
	}
	o.StartTimeout = 2 * time.Minute
	host, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		report := host.Shutdown(ctx)
		require.True(t, report.Clean(), "leftovers: %+v", report.Leftovers)
		require.Eventually(t, func() bool { return len(proc.WithEnv("HOME", s.Dir)) <= 1 }, 3*time.Minute, 50*time.Millisecond, "kernels are left behind")
	})
	return host
}

// streamed makes a call and returns its result and its events.
func streamed(t *testing.T, s *coppice.Session, r coppice.Request) (messages.Result, []messages.Event) {
	t.Helper()
	var all []messages.Event
	for e, err := range s.Stream(t.Context(), r) {
		require.NoError(t, err)
		if f, ok := e.(messages.Final); ok {
			return f.Result, all
		}
		all = append(all, e)
	}
	require.FailNow(t, "a stream without an end")
	return messages.Result{}, nil
}

// A cell prints numbered lines while every WebSocket is cut five times a
// second: each line comes once, in order, or a notice stands in its place.
func TestEveryWebSocketIsCutAllTheTime(t *testing.T) {
	t.Parallel()
	loops := map[string]string{"print": "for i in range(10000):\n    print(i)\n    if i % 10 == 0: time.sleep(0.002)"}
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		loops["print+flush"] = "for i in range(10000):\n    print(i, flush=True)\n    if i % 3 == 0: time.sleep(0.001)"
	}
	for _, kind := range external.Kinds(external.KernelGateway) {
		for name, loop := range loops {
			t.Run(fmt.Sprint(kind, "/", name), func(t *testing.T) {
				t.Parallel()
				server := external.Start(t, kind, external.Options{})
				proxy := external.NewProxy(t, server.URL)
				host := startExternal(t, server, proxy.URL, "", coppice.Options{})
				s := session(host, "a")
				run(t, s, cells("import time; x = 'kept'"))
				stop := proxy.CutEvery(200 * time.Millisecond)
				r, all := streamed(t, s, cells(loop+"\n'the end'"))
				stop()
				require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
				require.Equal(t, messages.StateKept, r.State)
				lines, missing, notices := requireLines(t, all, 10000)
				t.Logf("%d cuts: %d lines, %d missing, %d notices", proxy.Cuts(), lines, missing, notices)
				require.Greater(t, proxy.Cuts(), 3)
				r = run(t, s, cells("x"))
				require.Contains(t, r.Text, "kept")
			})
		}
	}
}

// requireLines checks that numbered lines come once and in order, and that there
// is a notice wherever some are missing.
func requireLines(t *testing.T, all []messages.Event, n int) (lines, missing, notices int) {
	t.Helper()
	next, told, rest := 0, false, ""
	for _, e := range all {
		switch e := e.(type) {
		case messages.Notice:
			t.Logf("after line %d: %s: %s", next-1, e.Code, e.Text)
			told, rest = true, ""
			notices++
		case messages.Stream:
			for line := range strings.Lines(rest + e.Text) {
				if rest = line; !strings.HasSuffix(line, "\n") {
					break
				}
				rest = ""
				var i int
				_, err := fmt.Sscanln(line, &i)
				require.NoError(t, err, line)
				require.GreaterOrEqual(t, i, next, "twice, or out of order")
				if i > next {
					require.True(t, told, "lines %d to %d are missing, and nobody says so", next, i-1)
					missing += i - next
				}
				next, told = i+1, false
				lines++
			}
		}
	}
	if next < n {
		require.True(t, told, "the lines from %d on are missing, and nobody says so", next)
		missing += n - next
	}
	return lines, missing, notices
}

// requireToy is what holds for a kernel of any language.
func requireToy(t *testing.T, host *coppice.Host) {
	t.Helper()
	s := session(host, "a")
	r := run(t, s, cells("count", "hello"))
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	require.Equal(t, messages.StateFresh, r.State)
	require.Contains(t, r.Text, "hello")
	r = run(t, s, cells("count"))
	require.Equal(t, messages.StateKept, r.State)
	require.Equal(t, "3", strings.TrimSpace(r.Cells[0].Output), "no code of ours ran in it")

	r = run(t, s, cells("boom", "later"))
	require.Equal(t, messages.OutcomeError, r.Outcome)
	require.Equal(t, "ToyError", r.Cells[0].Error.Name)
	require.Equal(t, messages.CellPending, r.Cells[1].Status)

	req := cells("wait")
	req.Timeout = time.Second
	r = run(t, s, req)
	require.Equal(t, messages.OutcomeTimeout, r.Outcome, r.Text)
	require.Equal(t, messages.StateKept, r.State)
	req = cells("count")
	req.Env = map[string]string{"A": "b"}
	r, all := streamed(t, s, req)
	require.Equal(t, messages.StateKept, r.State)
	require.True(t, slices.ContainsFunc(all, func(e messages.Event) bool { n, ok := e.(messages.Notice); return ok && n.Code == "environment" }))
	req = cells("count")
	req.Reset = true
	r = run(t, s, req)
	require.Equal(t, "1", strings.TrimSpace(r.Cells[0].Output))
}

// A kernel of another language on a server of somebody else, also when its
// connection is cut: it cannot repeat what was lost, so that is told.
func TestAKernelOfAnotherLanguage(t *testing.T) {
	t.Parallel()
	if !full() { // TestAKernelOfAnotherLanguageHere does the same with half the processes
		return
	}
	server := external.Start(t, external.KernelGateway, external.Options{
		Kernelspecs: map[string]string{"toy/kernel.json": external.ToySpec(t)},
	})
	proxy := external.NewProxy(t, server.URL)
	host := startExternal(t, server, proxy.URL, "toy", coppice.Options{})
	requireToy(t, host)
	s := session(host, "b")
	run(t, s, cells("count"))
	stop := proxy.CutEvery(200 * time.Millisecond)
	r, all := streamed(t, s, cells("print 3000"))
	stop()
	if r.Outcome != messages.OutcomeOK { // its answer may have been on its way
		require.Equal(t, messages.OutcomeError, r.Outcome, r.Text)
		require.Equal(t, "ReplyLost", r.Cells[0].Error.Name)
	}
	lines, missing, notices := requireLines(t, all, 3000)
	t.Logf("%d cuts: %d lines, %d missing, %d notices", proxy.Cuts(), lines, missing, notices)
}

// The same on a gateway of ours, where the user's own kernels can be chosen.
func TestAKernelOfAnotherLanguageHere(t *testing.T) {
	t.Parallel()
	host, err := coppice.Start(t.Context(), coppice.Options{
		Python: testpython.Path(t), Home: t.TempDir(), Backend: coppice.Auto(coppice.Gateway(coppice.GatewayOptions{KernelName: "toy"}), coppice.Runner(coppice.RunnerOptions{})),
		Env: external.WithToy(t), StartTimeout: 2 * time.Minute,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	requireToy(t, host)
}

// What is wrong with an external server is told in the words that help.
func TestWhatIsWrongWithAnExternalServer(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	nobody, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	type wrong struct {
		url, token, kernel string
		says               []string
		not                string
	}
	cases := map[string]wrong{
		"nobody listens": {url: "http://" + nobody.Addr().String(), says: []string{"not reachable", "refused"}, not: "timeout"},
		"no answer":      {url: "http://" + silent.Addr().String(), says: []string{"not reachable (timeout)"}},
	}
	for _, kind := range external.Kinds(external.KernelGateway, external.JupyterServer) {
		s := external.Start(t, kind, external.Options{BasePath: "/base"})
		cases["wrong token: "+string(kind)] = wrong{url: s.URL, token: "wrong-secret", says: []string{"requires authentication. Set PI_PYTHON_GATEWAY_TOKEN."}}
		cases["no token: "+string(kind)] = wrong{url: s.URL, says: []string{"requires authentication. Set PI_PYTHON_GATEWAY_TOKEN."}}
		cases["unknown kernel: "+string(kind)] = wrong{url: s.URL, token: s.Token, kernel: "nope", says: []string{`no kernel called "nope"; it has python3`}}
		if kind == external.EnterpriseGateway && os.Getuid() == 0 {
			cases["no user"] = wrong{url: s.URL, token: s.Token, says: []string{"Set KERNEL_USERNAME."}}
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append(os.Environ(), "PI_PYTHON_GATEWAY_URL="+c.url, "PI_PYTHON_GATEWAY_TOKEN="+c.token)
			if c.kernel != "" {
				env = append(env, "KERNEL_USERNAME=somebody")
			}
			host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Env: env, Backend: coppice.Auto(coppice.Gateway(coppice.GatewayOptions{KernelName: c.kernel}), coppice.Runner(coppice.RunnerOptions{}))})
			require.NoError(t, err)
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				require.True(t, host.Shutdown(ctx).Clean())
			})
			r := run(t, session(host, "a"), cells("1"))
			require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
			for _, part := range c.says {
				require.Contains(t, r.Text, part)
			}
			if c.not != "" {
				require.NotContains(t, r.Text, c.not)
			}
			if c.token != "" {
				require.NotContains(t, r.Text, c.token)
			}
		})
	}
}

// Several servers share the sessions. One that is killed takes its own sessions
// with it, which begin anew on the other; the others notice nothing.
func TestSessionsAreSpreadOverServers(t *testing.T) {
	t.Parallel()
	first := external.Start(t, external.KernelGateway, external.Options{})
	second := external.Start(t, external.JupyterServer, external.Options{BasePath: "/base"})
	require.NotEqual(t, first.Token, second.Token)
	second.Token = first.Token + ", " + second.Token // each has its own
	host := startExternal(t, second, first.URL+", "+second.URL+"/", "", coppice.Options{MaxSessions: 50})
	place := func(i int) (home, x string) {
		r := run(t, session(host, i), cells("import os; x = globals().get('x', 0) + 1; print(os.environ['HOME'], x)"))
		require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
		home, x, _ = strings.Cut(strings.TrimSpace(r.Text), " ")
		return home, x
	}
	count := map[string][]int{}
	least := 1 // on each server
	if full() {
		least = 2
	}
	for i := 0; len(count[first.Dir]) < least || len(count[second.Dir]) < least; i++ {
		require.Less(t, i, 40, "the sessions are not spread: %v", count)
		home, _ := place(i)
		count[home] = append(count[home], i)
	}

	require.NoError(t, syscall.Kill(first.PID, syscall.SIGKILL))
	for _, i := range count[second.Dir] {
		home, x := place(i)
		require.Equal(t, []string{second.Dir, "2"}, []string{home, x}, "these are kept")
	}
	for _, i := range count[first.Dir] {
		var r messages.Result
		require.Eventually(t, func() bool { // what runs while the loss is found out is lost
			r = run(t, session(host, i), cells("import os; print(os.environ['HOME'], 'x' in globals())"))
			return r.Outcome == messages.OutcomeOK
		}, time.Minute, 100*time.Millisecond, "%+v", r)
		require.NotEqual(t, messages.StateKept, r.State)
		require.Contains(t, r.Text, second.Dir+" False")
	}
}
