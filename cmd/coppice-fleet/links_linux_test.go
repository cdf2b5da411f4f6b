package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet/natskv/embed"
)

// asEngine has this program be a server of NATS: its folder, its port, that of the cluster, and
// those of the others' clusters.
const asEngine = "COPPICE_TEST_AS_NATS"

func beEngine(words []string) int {
	port, _ := strconv.Atoi(words[1])
	cluster, _ := strconv.Atoi(words[2])
	o := embed.Options{Dir: words[0], Port: port, ClusterPort: cluster, Name: "engine-" + words[1], Token: secret(cli.DirectoryOptions{Secret: token})}
	for _, peer := range words[3:] {
		o.Peers = append(o.Peers, "127.0.0.1:"+peer)
	}
	if _, err := embed.Start(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

// link is a way to an address that can be cut.
type link struct {
	listener net.Listener
	cut      atomic.Bool

	mu    sync.Mutex
	to    string              // guarded by mu
	conns map[net.Conn]func() // guarded by mu
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	k := &link{listener: l, to: to, conns: map[net.Conn]func(){}}
	t.Cleanup(func() { _ = l.Close(); k.set(true) })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go k.carry(c) // ends with either side, or with a cut
		}
	}()
	return k
}

func (k *link) at() string { return k.listener.Addr().String() }

func (k *link) lead(to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to = to
}

// set cuts it, with what goes over it, or mends it.
func (k *link) set(cut bool) {
	k.cut.Store(cut)
	k.mu.Lock()
	defer k.mu.Unlock()
	if cut {
		for _, end := range k.conns {
			end()
		}
	}
}

func (k *link) carry(here net.Conn) {
	defer func() { _ = here.Close() }()
	k.mu.Lock()
	to := k.to
	k.mu.Unlock()
	if k.cut.Load() || to == "" {
		return
	}
	there, err := net.Dial("tcp", to) //nolint:noctx // of this machine
	if err != nil {
		return
	}
	end := func() { _ = here.Close(); _ = there.Close() }
	defer end()
	k.mu.Lock()
	k.conns[here] = end
	k.mu.Unlock()
	defer func() { k.mu.Lock(); delete(k.conns, here); k.mu.Unlock() }()
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(here, there); end() })
	_, _ = io.Copy(there, here)
	end()
	back.Wait()
}
