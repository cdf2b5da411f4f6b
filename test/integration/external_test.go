//go:build linux

package integration_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/external"
	"github.com/coppice-run/coppice/test/proc"
)

// startExternal makes a host that uses a server which is there. At the end of
// the test, nothing but the server is left.
func startExternal(t *testing.T, s *external.Server, url string, o coppice.Options) *coppice.Host {
	t.Helper()
	o.Home = t.TempDir()
	o.GatewayURL, o.GatewayToken = url, s.Token
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
		require.Eventually(t, func() bool { return len(proc.WithEnv("HOME", s.Dir)) <= 1 }, 30*time.Second, 50*time.Millisecond, "kernels are left behind")
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
				host := startExternal(t, server, proxy.URL, coppice.Options{})
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
