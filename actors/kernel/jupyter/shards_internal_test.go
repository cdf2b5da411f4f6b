//go:build linux

package jupyter

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// fakeShard is a recorded gateway: a fake server, and a process that does nothing.
type fakeShard struct {
	server *fakegateway.Server
	proc   *exec.Cmd
	dead   bool
}

func (f *fakeShard) kill() {
	if f.dead {
		return
	}
	f.dead = true
	_ = f.proc.Process.Kill()
	_ = f.proc.Wait()
	f.server.Close()
}

// made is a kernel of a host.
type made struct {
	*jupyter.Kernel
	host, shard int
}

const (
	modelShards  = 3
	modelKernels = 2
	modelHosts   = 2
)

// shardWorld is three shards that take two kernels each, and two hosts. No further
// gateway can be started.
type shardWorld struct {
	shards  []*fakeShard
	hosts   []*shards
	kernels []made
	held    [modelHosts]map[int]bool // what the model says
	over    [modelHosts]bool
}

func newShardWorld(t *rapid.T) *shardWorld {
	home, err := os.MkdirTemp("", "shards")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	none := pyenv.Runtime{Path: "/nonexistent/python", Version: "3.12.0"}
	w := &shardWorld{}
	var all []sharedgateway.Gateway
	for n := range modelShards {
		server, err := fakegateway.Start(fakegateway.Options{MaxKernels: modelKernels})
		require.NoError(t, err)
		f := &fakeShard{server: server, proc: exec.Command("sleep", "600")}
		require.NoError(t, f.proc.Start())
		t.Cleanup(f.kill)
		id, err := process.Identify(f.proc.Process.Pid)
		require.NoError(t, err)
		w.shards = append(w.shards, f)
		all = append(all, sharedgateway.Gateway{
			URL: server.URL(), Token: server.Token(), Process: id, Fingerprint: sharedgateway.Fingerprint(none), Shard: n,
			MaxKernels: modelKernels, Dir: filepath.Join(home, fmt.Sprint("cpk-none", n)),
		})
	}
	data, err := json.Marshal(map[string]any{"gateways": all})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(sharedgateway.DirIn(home), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(sharedgateway.DirIn(home), "gateway.json"), data, 0o600))
	for i := range modelHosts {
		life, end := context.WithCancel(context.Background())
		h := newShards(life, NewServer(ServerOptions{Home: home}), none, nil)
		h.rest = time.Hour // the test says when
		t.Cleanup(func() { end(); h.close() })
		e, err := h.join(life, 0)
		require.NoError(t, err)
		h.leave(e, nil)
		w.hosts, w.held[i] = append(w.hosts, h), map[int]bool{0: true}
	}
	return w
}

// on counts the kernels of a host, or of all (-1), on a shard.
func (w *shardWorld) on(host, shard int) int {
	n := 0
	for _, k := range w.kernels {
		if k.shard == shard && (host < 0 || k.host == host) {
			n++
		}
	}
	return n
}

// where is the shard that the next kernel of a host goes to, -1 for none: the
// first with a place, and behind one that cannot be had the first that the host
// has already. It notes which are held then.
func (w *shardWorld) where(host int) int {
	lacking := false
	for n, f := range w.shards {
		if lacking && !w.held[host][n] {
			continue
		}
		if f.dead {
			lacking = true
			continue
		}
		w.held[host][n] = true
		if w.on(-1, n) < modelKernels {
			return n
		}
	}
	return -1
}

func (w *shardWorld) start(t *rapid.T) {
	host := rapid.IntRange(0, modelHosts-1).Draw(t, "host")
	k, e, err := w.hosts[host].start(context.Background(), jupyter.StartRequest{Name: "python3"})
	if w.over[host] {
		require.ErrorIs(t, err, errOver)
		return
	}
	want := w.where(host)
	if want < 0 {
		require.ErrorContains(t, err, "start a kernel gateway", "a further one would be started")
		return
	}
	require.NoError(t, err)
	require.Equal(t, want, e.Shared.Shard)
	w.kernels = append(w.kernels, made{k, host, want})
}

func (w *shardWorld) end(t *rapid.T) {
	if len(w.kernels) == 0 {
		t.Skip()
	}
	i := rapid.IntRange(0, len(w.kernels)-1).Draw(t, "kernel")
	require.NoError(t, w.kernels[i].Delete(context.Background()))
	w.kernels = append(w.kernels[:i], w.kernels[i+1:]...)
}

// die ends a shard: each host that has it hears of it, and loses the kernels on it.
func (w *shardWorld) die(t *rapid.T) {
	n := rapid.IntRange(0, modelShards-1).Draw(t, "shard")
	if w.shards[n].dead {
		t.Skip()
	}
	w.shards[n].kill()
	for i, h := range w.hosts {
		if w.over[i] {
			continue
		}
		if delete(w.held[i], n); len(w.held[i]) == 0 {
			require.ErrorContains(t, <-h.last, "the gateway ended")
			w.over[i] = true
		}
	}
	var left []made
	for _, k := range w.kernels {
		if k.shard != n {
			left = append(left, k)
			continue
		}
		<-k.Done()
		_ = k.Delete(context.Background()) // joins its goroutines; no server is left to answer
	}
	w.kernels = left
}

// look has the hosts give up what they do not use.
func (w *shardWorld) look(t *rapid.T) {
	for i, h := range w.hosts {
		for n := 1; n < modelShards; n++ {
			h.mu.Lock()
			e := h.held[n]
			h.mu.Unlock()
			if e == nil {
				continue
			}
			want := len(w.held[i]) > 1 && w.on(i, n) == 0
			require.Equal(t, want, h.rests(e), "host %d, shard %d", i, n)
			if want {
				delete(w.held[i], n)
				e.release() // as its watcher would, which the test's hour holds up
			}
		}
	}
}

// check holds the hosts against the model.
func (w *shardWorld) check(t *rapid.T) {
	for i, h := range w.hosts {
		for n := range modelShards {
			require.Eventually(t, func() bool { return h.holds(n) == w.held[i][n] }, 3*time.Minute, time.Millisecond, "host %d, shard %d, held: %v", i, n, w.held[i][n])
		}
	}
	for n, f := range w.shards {
		if !f.dead {
			require.Len(t, f.server.Live(), w.on(-1, n))
		}
	}
	for _, k := range w.kernels {
		require.NoError(t, k.Err(), "the end of a shard does not reach the kernels of another")
	}
}

// TestTheChoiceOfAShard has two hosts begin and end kernels on shards that die.
func TestTheChoiceOfAShard(t *testing.T) {
	if os.Getenv("COPPICE_TEST_FULL") == "" { // a step is several requests
		require.NoError(t, flag.Set("rapid.checks", "15"))
		require.NoError(t, flag.Set("rapid.steps", "20"))
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newShardWorld(t)
		t.Repeat(map[string]func(*rapid.T){"start": w.start, "start another": w.start, "end": w.end, "die": w.die, "look": w.look, "": w.check})
		for _, k := range w.kernels {
			require.NoError(t, k.Delete(context.Background()))
		}
	})
}
