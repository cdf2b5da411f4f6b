package escape_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// reach tries what a session with a part of the network may, and what it may not: it prints a
// word for each.
const reach = `import os, socket, urllib.error, urllib.request
def attempt(act):
    try: return act()
    except urllib.error.HTTPError as err: return '%d %s' % (err.code, err.reason)
    except PermissionError: return 'refused'
    except OSError as err: return type(err).__name__
def fetch(at): return urllib.request.urlopen('http://%s/' % at, timeout=60).read().decode()
def connect(at, family=socket.AF_INET, kind=socket.SOCK_STREAM, protocol=0):
    with socket.socket(family, kind, protocol) as s:
        s.connect(at)
        return 'connected'
def listen():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0)); s.listen()
        with socket.create_connection(s.getsockname()): return 'listened'
def free():
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, 25, b'')  # SO_BINDTODEVICE
        return 'freed'
def bound():
    with socket.socket() as s:
        try: s.connect(('127.0.0.1', 1))
        except OSError: pass
        socket.socket.connect_ex(s, ('0.0.0.0', 0))
        return s.getsockopt(socket.SOL_SOCKET, 25, 16).rstrip(b'\0').decode()
host, port = one.split(':')
for word in (
    attempt(lambda: fetch(one)), attempt(lambda: fetch(other)), attempt(lambda: connect((host, int(port)))), attempt(listen), attempt(free), attempt(bound),
    attempt(lambda: connect(('127.0.0.1', 9), kind=socket.SOCK_DGRAM)), attempt(lambda: connect(('::1', 9), family=socket.AF_INET6)),
    attempt(lambda: connect((host, int(port)), protocol=262)), attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
): print(word)`

// TestPartsOfTheNetwork: sessions, kernels and programs of a workspace reach the hosts that are
// named, by the proxy, or the ports of this machine, and nothing else.
func TestPartsOfTheNetwork(t *testing.T) {
	hello := func() string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
		t.Cleanup(s.Close)
		u, err := url.Parse(s.URL)
		require.NoError(t, err)
		return u.Host
	}
	one, other := hello(), hello()
	code := fmt.Sprintf("one, other = %q, %q\n%s", one, other, reach)
	byProxy := fmt.Sprintf("hello\n403 %s may not be reached from here, but %s\nrefused\nrefused\nrefused\nlo\nrefused\nrefused\nrefused\nrefused", other, one)
	within := "hello\nhello\nconnected\nlistened\nrefused\nlo\nrefused\nrefused\nrefused\nrefused"
	for _, rung := range []string{kernel.IsolationSeccomp, kernel.IsolationUser} {
		if why := lacks(t, rung); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", rung, os.Geteuid(), why)
			continue
		}
		for name, backend := range map[string]coppice.Backend{"runner": coppice.Runner(coppice.RunnerOptions{}), "gateway": coppice.Gateway(coppice.GatewayOptions{WarmKernels: -1})} {
			if name == "gateway" && rung == kernel.IsolationSeccomp && !full && lacks(t, kernel.IsolationUser) == nil { // it is on the other rung
				continue
			}
			t.Run(rung+"/"+name, func(t *testing.T) { //nolint:paralleltest // as the other tables
				h := behind(t, rung, shared(t), func(o *coppice.Options) { o.Backend, o.Home, o.Isolation.Hosts = backend, shared(t), []string{one} })
				for _, in := range []string{"hosts", "loopback"} {
					o := workspace.Options{}
					want := byProxy
					if in == "loopback" {
						want = within
						o.Isolation = h.Options().Isolation
						o.Isolation.Hosts, o.Isolation.Loopback, o.Isolation.Write = nil, true, nil
					}
					w, err := h.Workspace(t.Context(), in, o)
					require.NoError(t, err)
					r := call(t, h.Session("s", coppice.InWorkspace(in)), code)
					require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
					require.Equal(t, want, r.Text)
					p, err := w.Start(t.Context(), workspace.ProcessOptions{Args: []string{h.Options().Python, "-c", code}})
					require.NoError(t, err)
					require.Equal(t, want+"\n", printed(t, p))
					about := w.Info().IsolationText
					require.NotContains(t, about, "no TCP")
					require.NotContains(t, about, "no sockets of the network")
					told := w.Info().Refused
					if in == "loopback" {
						require.Contains(t, about, "of the network: the ports of this machine")
						require.Empty(t, told)
						continue
					}
					require.Contains(t, about, "of the network: "+one+", by a proxy")
					require.Len(t, told, 1)
					require.Equal(t, other, told[0].Host)
					require.Equal(t, 2, told[0].Times)
				}
			})
		}
	}
}

// TestPartsOfTheNetworkThatCannotBeHad are refused at the start.
func TestPartsOfTheNetworkThatCannotBeHad(t *testing.T) {
	t.Parallel()
	h, err := coppice.Start(t.Context(), coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Home: t.TempDir(), Python: python(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.True(t, h.Shutdown(context.Background()).Clean()) })
	for says, i := range map[string]coppice.Isolation{
		"from the rung seccomp on, and not on the rung landlock": {Level: kernel.IsolationLandlock, Hosts: []string{"a.example"}},
		"and not on the rung privileges":                         {Level: kernel.IsolationPrivileges, Loopback: true},
		"leave out Network or Hosts":                             {Level: kernel.IsolationSeccomp, Network: true, Hosts: []string{"a.example"}},
		"name 127.0.0.1 with its port among the Hosts":           {Level: kernel.IsolationStrongest, Loopback: true, Hosts: []string{"a.example"}},
		"list 127.0.0.1 or ::1, with the port":                   {Level: kernel.IsolationSeccomp, Hosts: []string{"localhost:7788"}},
		`the host "a b"`:                                         {Level: kernel.IsolationSeccomp, Hosts: []string{"a b"}},
	} {
		i.Write = []string{t.TempDir()}
		_, err = coppice.Start(t.Context(), coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Home: t.TempDir(), Python: python(t), Isolation: i})
		require.ErrorIs(t, err, coppice.ErrOptions)
		require.ErrorContains(t, err, says)
		_, err = h.Workspace(t.Context(), "w", workspace.Options{Isolation: i})
		require.ErrorIs(t, err, coppice.ErrOptions)
		require.ErrorContains(t, err, says)
	}
}
