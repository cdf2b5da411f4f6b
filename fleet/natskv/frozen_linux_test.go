package natskv_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/natskv"
	"github.com/coppice-run/coppice/fleet/natskv/embed"
)

// patience is how long a test waits for what it expects.
const patience = time.Minute

// cluster starts three servers, each a process that ends with the test, and returns where clients come.
func cluster(t *testing.T) (servers []*exec.Cmd, urls []string) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	ports := freePorts(t, 6)
	for i := range 3 {
		o := embed.Options{Dir: t.TempDir(), Port: ports[i], ClusterPort: ports[3+i], Name: "server-" + strconv.Itoa(i), Token: "a token"}
		for _, port := range ports[3:] {
			if port != o.ClusterPort {
				o.Peers = append(o.Peers, "127.0.0.1:"+strconv.Itoa(port))
			}
		}
		text, err := json.Marshal(o)
		require.NoError(t, err)
		cmd := exec.Command(program) // until its cleanup, after the context of the test
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asServer+"="+string(text)), os.Stdout, os.Stderr
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGCONT)
			_ = stdin.Close()
			_ = cmd.Wait()
		})
		servers, urls = append(servers, cmd), append(urls, "nats://127.0.0.1:"+strconv.Itoa(o.Port))
	}
	return servers, urls
}

// freePorts are some that were free a moment ago.
func freePorts(t *testing.T, count int) (ports []int) {
	t.Helper()
	for range count {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = l.Close() }() // each is another one
		at, is := l.Addr().(*net.TCPAddr)
		require.True(t, is)
		ports = append(ports, at.Port)
	}
	return ports
}

// TestAServerIsFrozen: of three servers one stands still, to which two of the nodes are connected.
// It keeps their connections, and may be the leader. They go on with another server, and outlive
// a node that is silent, although its lease is longer than theirs.
func TestAServerIsFrozen(t *testing.T) {
	t.Parallel()
	const lease = 10 * time.Second
	servers, urls := cluster(t)
	join := func(name string, first int, ttl time.Duration) (*fleet.Member, *natskv.Directory) {
		o := natskv.Options{
			URL: strings.Join(slices.Concat(urls[first:], urls[:first]), ","), Replicas: 3, Synced: true, Lease: lease,
			Connect: []nats.Option{nats.DontRandomize(), nats.Token("a token")},
		}
		var d *natskv.Directory
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), lease)
			defer cancel()
			var err error
			d, err = natskv.Open(ctx, o)
			return err == nil
		}, patience, 100*time.Millisecond)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		m, err := fleet.Join(t.Context(), fleet.Options{Directory: d, Name: name, TTL: ttl})
		require.NoError(t, err)
		return m, d
	}
	a, own := join("a", 0, lease)
	b, _ := join("b", 0, lease)
	c, near := join("c", 1, lease)
	roster := fleet.NewRoster(near, nil)
	defer roster.Close()
	silent, far := join("silent", 1, lease+lease/2)
	all := []*fleet.Member{a, b, c}
	defer func() {
		for _, m := range append(all, silent) {
			_ = m.Leave(t.Context()) // it need not be told any longer
		}
	}()
	knows := func() bool {
		nodes, err := roster.List(t.Context())
		return err == nil && slices.ContainsFunc(nodes, func(n fleet.Node) bool { return n.ID == silent.ID() })
	}
	require.Eventually(t, knows, patience, 10*time.Millisecond)
	require.NoError(t, far.Close()) // its renewals end
	require.NoError(t, servers[0].Process.Signal(syscall.SIGSTOP))

	frozen := time.Now()
	for wait := true; wait; {
		_, err := own.Swap(t.Context(), "key", []byte("x"), "")
		wait = err != nil && time.Since(frozen) < patience
	}
	t.Logf("a swap was acknowledged %s after", time.Since(frozen))
	require.Eventually(t, func() bool { return !knows() }, patience, 10*time.Millisecond)
	t.Logf("the silent node was declared dead %s after", time.Since(frozen))
	for _, m := range all {
		require.NoError(t, m.Err(), m.ID())
	}
}
