package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// rolling is what clients are told while the nodes of a fleet are restarted one by one.
type rolling struct {
	t      *testing.T
	fronts []*node

	mu    sync.Mutex
	told  map[string]int // answers and states, by their names; guarded by mu
	wrong []string       // what must not be; guarded by mu
	long  time.Duration  // the longest call; guarded by mu
}

func (r *rolling) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[what]++
}

func (r *rolling) bad(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// client counts in a session of its own until ctx ends, and holds what it is told against what it
// knows: each call counts once, and nothing is forgotten.
func (r *rolling) client(ctx context.Context, number int) {
	random := rand.New(rand.NewPCG(uint64(number), 1)) //nolint:gosec // it spreads the calls
	session, epoch, value := fmt.Sprint("c", number), 0, 0
	for i := 0; ctx.Err() == nil; i++ {
		began, id := time.Now(), fmt.Sprint(session, "-", i)
		result, now := r.call(random, id, session, epoch)
		if result == nil {
			return
		}
		epoch = now
		r.mu.Lock()
		r.long = max(r.long, time.Since(began))
		r.mu.Unlock()
		r.count(string(result.State))
		line, _, _ := strings.Cut(result.Text, "\n") // what a session was restored with follows it
		got, err := strconv.Atoi(line)
		switch {
		case err != nil || result.Outcome != messages.OutcomeOK:
			r.bad("%s: %s %s: %s", id, result.Outcome, result.State, result.Text)
		case got != value+1:
			r.bad("%s: %d came after %d, in epoch %d, %s: %v", id, got, value, epoch, result.State, result.Notices)
		case value > 0 && result.State != messages.StateKept && result.State != messages.StateRestored:
			r.bad("%s: it is %s", id, result.State)
		}
		value = got
		select {
		case <-ctx.Done():
		case <-time.After(200*time.Millisecond + time.Duration(random.Int64N(int64(2*time.Second)))):
		}
	}
}

// call makes one call until it has its result, with the epoch that the client knows then; nil: it is
// lost, which is noted.
func (r *rolling) call(random *rand.Rand, id, session string, epoch int) (*messages.Result, int) {
	again := func() { time.Sleep(50 * time.Millisecond) } //nolint:forbidigo // between two questions to other processes
	front := func() *node { return r.fronts[random.IntN(len(r.fronts))] }
	body := fmt.Sprintf(`{"id":%q,"session":%q,"cells":[{"code":"n = globals().get('n', 0) + 1\nprint(n)"}]}`, id, session)
	var trail []string
	for begun, end := false, time.Now().Add(patience); !begun; {
		a := front().once(http.MethodPost, "/api/executions", body, epoch, patience)
		now, _ := strconv.Atoi(a.header.Get("Coppice-Epoch"))
		if said := fmt.Sprintf("%d %s by %s in epoch %d", a.status, a.code(), a.header.Get("Coppice-Node"), now); len(trail) == 0 || trail[len(trail)-1] != said {
			trail = append(trail, said)
		}
		switch {
		case a.status == http.StatusCreated || a.status == http.StatusOK:
			begun, epoch = true, max(epoch, now)
		case a.status == http.StatusConflict && a.code() == "begun":
			begun = true
		case a.status == http.StatusConflict && now > epoch:
			r.count(a.code())
			epoch = now
		case time.Now().After(end) || a.err == nil && a.status != http.StatusServiceUnavailable && a.status != http.StatusBadGateway && a.status != http.StatusGone:
			r.bad("%s was not begun: %d %s %v", id, a.status, a.body, a.err)
			return nil, 0
		default: // it is sent again, under its id
			r.count(a.code() + " and sent again")
			again()
		}
	}
	for end := time.Now().Add(patience); ; again() {
		a := front().once(http.MethodGet, "/api/executions/"+id+"?wait=10", "", 0, patience)
		var x client.Execution
		switch {
		case a.status == http.StatusOK && json.Unmarshal([]byte(a.body), &x) == nil && x.Result != nil:
			return x.Result, epoch
		case time.Now().After(end) || a.status == http.StatusGone || a.status == http.StatusNotFound:
			r.bad("the result of %s is lost: %d %s %v, after %q", id, a.status, a.body, a.err, trail)
			return nil, 0
		}
	}
}

// TestARollingRestart restarts each of four nodes under the load of 200 clients: no result is lost,
// none is told twice or out of order, and every session goes on with what it has in memory.
func TestARollingRestart(t *testing.T) {
	full(t)
	const clients = 200
	fleet := newNodes(t).keeps()
	kept := fleet.more()
	fleet.more = func() []string {
		return append(slices.Clone(kept), "--fleet-placement", "spread", "--max-sessions", "160", "--drain-timeout", patience.String())
	}
	nodes := map[string]*node{}
	for _, name := range []string{"a", "b", "c", "d"} {
		nodes[name] = fleet.node(name)
	}
	r := &rolling{t: t, fronts: []*node{fleet.node("front-1", "--fleet-front"), fleet.node("front-2", "--fleet-front")}, told: map[string]int{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calling sync.WaitGroup
	for i := range clients {
		calling.Go(func() { r.client(ctx, i) })
	}
	all := func(calls int) func() bool {
		return func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.told["fresh"]+r.told["kept"]+r.told["restored"] >= calls || len(r.wrong) > 0
		}
	}
	require.Eventually(t, all(2*clients), patience, 100*time.Millisecond)
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		began := time.Now()
		nodes[name].signal(syscall.SIGTERM)
		<-nodes[name].gone
		ended := time.Since(began)
		nodes[name] = fleet.node(name)
		r.mu.Lock()
		t.Logf("%s has ended after %s, and is there again after %s: %v", name, ended.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), r.told)
		calls := r.told["fresh"] + r.told["kept"] + r.told["restored"]
		r.mu.Unlock()
		require.Eventually(t, all(calls+clients), patience, 100*time.Millisecond)
	}
	cancel()
	calling.Wait()
	t.Logf("%v; the longest call took %s", r.told, r.long.Round(time.Millisecond))
	require.Empty(t, r.wrong)
	require.Equal(t, clients, r.told["fresh"], "each session begins once")
	require.Positive(t, r.told["restored"])
}
