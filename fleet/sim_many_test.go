package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// many is a fleet of many nodes, in racks, and what happens to it.
type many struct {
	nodes, racks, keys, clients int
	// faults is how many happen, one after the other.
	faults int
}

// crowd is such a fleet in a bubble.
type crowd struct {
	many
	*history
	nodes []*simulated
	// seen counts the faults by their kinds.
	seen map[string]int
}

// TestManyNodes: what TestSchedules says of three nodes holds of many, while racks lose their power,
// parts of the fleet are cut off, the directory is away for longer than a lease and comes back with
// requests that were late, and each node's clock goes as it likes, by up to four in a hundred.
func TestManyNodes(t *testing.T) {
	size := many{nodes: 30, racks: 5, keys: 120, clients: 60, faults: 8}
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		size = many{nodes: 120, racks: 10, keys: 1200, clients: 500, faults: 16}
	}
	if n, err := strconv.Atoi(os.Getenv("COPPICE_TEST_NODES")); err == nil { // by hand, without the race detector: each node sees all renewals, so it takes the square of it
		size = many{nodes: n, racks: 20, keys: 4 * n, clients: 2 * n, faults: 8}
	}
	for name, how := range map[string]mode{
		"by the lease": {forget: 4 * ttl, epochs: true},
		"strict":       {strict: true, forget: -1, epochs: true},
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(size, how, seed)
				c.play(t, seed)
				c.wrong = append(c.wrong, c.memory.wrong...)
				require.Empty(t, c.wrong, "seed %d", seed)
				require.Greater(t, c.told, 2*size.clients, "calls are answered all the while")
				t.Logf("seed %d: %d nodes, %d keys: %d calls begun, %d answered, %d ownerships, faults %v", seed, size.nodes, size.keys, len(c.runs), c.told, len(c.owners), c.seen)
			})
		})
	}
}

func newCrowd(size many, how mode, seed uint64) *crowd {
	c := &crowd{many: size, history: newHistory(), seen: map[string]int{}}
	store, random := fleettest.NewMemory(), rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it draws what happens
	for range size.nodes {
		c.nodes = append(c.nodes, &simulated{
			link: fleettest.NewLink(store), mode: how, h: c.history,
			ahead: time.Duration(random.Int64N(int64(1000 * time.Hour))), fast: 0.08*random.Float64() - 0.04,
		})
	}
	return c
}

// play has the fleet live through its faults, and looks whether it comes to rest.
func (c *crowd) play(t *testing.T, seed uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	calling, hangUp := context.WithCancel(ctx)
	var lives, calls sync.WaitGroup
	for _, n := range c.nodes {
		lives.Go(func() { n.live(ctx) })
	}
	synctest.Wait()
	for i := range c.clients {
		calls.Go(func() { c.client(calling, i, seed) })
	}
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // as above
	for range c.faults {
		c.fault(random)
	}
	hangUp()
	calls.Wait()
	for _, n := range c.nodes {
		n.link.Faults(nil)
		n.link.Mend()
	}
	time.Sleep(4 * ttl)
	c.rest(ctx, t)
	cancel()
	lives.Wait()
	for _, n := range c.nodes {
		require.NoError(t, n.link.Close())
	}
}

// client makes calls at any node, and sends those again that had no answer, as clients do.
func (c *crowd) client(ctx context.Context, number int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, uint64(number)+2)) //nolint:gosec // as above
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprint("key ", random.IntN(c.keys))
		call := fleet.Call{ID: fmt.Sprint(number, ".", i)}
		for range 1 + random.IntN(3) {
			within, cancel := context.WithTimeout(ctx, ttl+ttl/2)
			n := c.front(within, key, c.nodes[random.IntN(len(c.nodes))])
			call = n.call(within, key, call, time.Duration(random.Int64N(int64(ttl/2))))
			if m := n.now(); m != nil && random.IntN(8) == 0 {
				if o, err := m.Claim(within, key); err == nil {
					c.owned(o)
					switch random.IntN(3) {
					case 0:
						c.memory.keep(within, o)
					case 1:
						c.memory.drop(within, o)
					default:
						_ = o.Release(within)
					}
				}
			}
			cancel()
		}
		time.Sleep(time.Duration(random.Int64N(int64(ttl / 2))))
	}
}

// front is the node that any other one sends a call of a key to: its owner, as far as that one knows.
func (c *crowd) front(ctx context.Context, key string, asked *simulated) *simulated {
	if m := asked.now(); m != nil {
		id, _, err := m.Owner(ctx, key)
		for _, n := range c.nodes {
			if owner := n.now(); err == nil && owner != nil && owner.ID() == id {
				return n
			}
		}
	}
	return asked
}

// fault has something go wrong, and waits until it is over or others have acted on it.
func (c *crowd) fault(random *rand.Rand) {
	lasts := ttl/2 + time.Duration(random.Int64N(int64(2*ttl)))
	kinds := []string{"a rack dies", "nodes are cut off", "the directory is away", "requests are late", "processes are killed"}
	kind := kinds[random.IntN(len(kinds))]
	c.seen[kind]++
	rack, silent := random.IntN(c.racks), dead()
	for i, n := range c.nodes {
		switch kind {
		case "a rack dies": // and is there again later
			if i%c.racks == rack {
				n.link.Cut()
				if m := n.now(); m != nil {
					go func() { _ = m.Leave(silent) }() // ends with the life
				}
			}
		case "nodes are cut off":
			if random.IntN(3) == 0 {
				n.link.Cut()
			}
		case "the directory is away":
			n.link.Cut()
		case "requests are late":
			after := time.Duration(random.Int64N(int64(ttl)))
			if random.IntN(3) == 0 {
				n.link.Faults(inTurn([]fleettest.Fault{{Late: after + 1}, {Mute: true}, {Stale: true}, {Drop: true}, {Before: after / 8}}))
			}
		default:
			if m := n.now(); m != nil && random.IntN(8) == 0 {
				go func() { _ = m.Leave(silent) }() // ends with the life
			}
		}
	}
	time.Sleep(lasts)
	for _, n := range c.nodes {
		n.link.Faults(nil)
		n.link.Mend()
	}
	time.Sleep(ttl / 2)
}

// dead is the context of a process that says nothing any more.
func dead() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// rest looks whether in the end each key has one owner, and any node is up.
func (c *crowd) rest(ctx context.Context, t *testing.T) {
	t.Helper()
	for i := range c.keys {
		key, owners := fmt.Sprint("key ", i), 0
		for _, n := range []*simulated{c.nodes[i%len(c.nodes)], c.nodes[(i+1)%len(c.nodes)], c.nodes[(i+2)%len(c.nodes)]} {
			require.NoError(t, n.now().Check())
			o, err := n.now().Claim(ctx, key)
			if err != nil {
				continue // it is at another one
			}
			c.owned(o)
			owners++
		}
		require.LessOrEqual(t, owners, 1, key)
	}
	for i := range c.keys {
		owner, _, err := c.nodes[0].now().Owner(ctx, fmt.Sprint("key ", i))
		require.NoError(t, err)
		require.NotEmpty(t, owner, "in the end each key has an owner")
	}
}
