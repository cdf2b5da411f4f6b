//go:build linux

package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/agent/selfref"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// shelf is the backend of a pack.
type shelf struct {
	mu    sync.Mutex
	books []string
}

// library is a pack of a host.
func library(s *shelf) primitive.Pack {
	return primitive.Pack{Name: "library", Guidance: "for books", BackendName: "the-shelf", Backend: s, Primitives: []primitive.Primitive{
		{
			Name: "add", Description: "adds a book", BestPractices: []string{"one at a time"}, NextSteps: []string{"list them"},
			Parameters: []primitive.Parameter{{Name: "title", Type: "str"}, {Name: "year", Type: "int", Kind: primitive.KeywordOnly, Optional: true, Default: "0"}},
			Handler: func(_ context.Context, c *primitive.Call) (any, error) {
				var a struct{ Title string }
				if err := c.Bind(&a); err != nil {
					return nil, err
				}
				s := c.Backend.(*shelf)
				s.mu.Lock()
				defer s.mu.Unlock()
				s.books = append(s.books, a.Title)
				c.Emit("added", a.Title)
				return len(s.books), nil
			},
		},
		{
			Name: "inner.boom", Description: "fails", BestPractices: []string{"do not"},
			Handler: func(context.Context, *primitive.Call) (any, error) { panic("secret") },
		},
	}}
}

// agent is a forked agent: it runs its message as code in its own session.
func agent(ctx context.Context, f coppice.AgentFork) (selfref.Answer, error) {
	if f.Message == "wait" {
		<-ctx.Done()
		return selfref.Answer{}, ctx.Err()
	}
	r, err := f.Session.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: f.Message}}})
	if err != nil {
		return selfref.Answer{}, err
	}
	return selfref.Answer{Response: r.Text}, nil
}

func runtimeHost(t *testing.T, backend string) (*coppice.Host, *selfref.Memory) {
	store := &selfref.Memory{}
	host := start(t, backend, coppice.Options{
		MaxSessions: 8, HostCalls: coppice.HostCallOptions{Packs: []primitive.Pack{library(&shelf{})}, Selfref: &coppice.Selfref{Store: store, Agent: agent}},
	})
	require.NoError(t, store.Save(t.Context(), "main", []selfref.Message{{Role: "system", Content: "You are kind."}, {Role: "user", Content: "hello"}}))
	return host, store
}

// runtimeSteps are run one after the other in one session.
func runtimeSteps(backend string) []step {
	live := step{cells: []string{"h = runtime.selfref.fork.spawn('secret', kernel='live')"}}
	gathered := step{cells: []string{"runtime.selfref.fork.gather_all(h)[h['fork_id']]['response']"}, contains: []string{"41"}}
	if backend == backends.Gateway {
		gathered = step{cells: []string{"r = runtime.selfref.fork.gather_all(h)[h['fork_id']]; print(r['status'], r['error_type'])"}, contains: []string{"error RuntimeError"}}
	}
	many := []step{
		{
			cells:  []string{"h = [runtime.selfref.fork.spawn(f'{n} * {n}') for n in range(3)]\nrs = runtime.selfref.fork.gather_all(h)\nprint([(k, r['status'], r['response']) for k, r in rs.items()])"},
			output: "[('fork_1', 'completed', '0'), ('fork_2', 'completed', '1'), ('fork_3', 'completed', '4')]",
		},
		{cells: []string{"h = runtime.selfref.fork.spawn('runtime.selfref.fork.spawn(\"1\")[\"depth\"]')\nruntime.selfref.fork.gather_all(h)[h['fork_id']]['response']"}, output: "'2'"},
	}
	if backend == backends.Gateway && !full { // each has a kernel of its own, and whose it is does not matter to them
		many = nil
	}
	return slices.Concat([]step{
		{cells: []string{"runtime.list_primitives(contains='library')"}, output: "['library.add', 'library.inner.boom']"},
		{cells: []string{"len(runtime.list_primitives('selfref.')), runtime.list_backends()"}, output: "(11, ['selfref', 'the-shelf'])"},
		{cells: []string{"runtime.library.add('Walden', year=1854)"}, output: "1"},
		{cells: []string{"runtime.call('library.add', title='Emma'), runtime.next_steps"}, output: "(2, ['list them'])"},
		{cells: []string{"runtime.library.add()"}, outcome: raised, contains: []string{"TypeError: library.add(): missing argument title", "Parameter requirements: title(str, required); year(int, optional, default=0)"}},
		{cells: []string{"runtime.library.add(5)"}, outcome: raised, contains: []string{"title must be str"}},
		{cells: []string{"runtime.library.none()"}, outcome: raised, contains: []string{"KeyError", "there is no primitive library.none"}},
		{cells: []string{"runtime.library.inner.boom()"}, outcome: raised, contains: []string{"failed inside (panicked)"}},
		{cells: []string{"runtime.library.add({1, 2})"}, outcome: raised, contains: []string{"TypeError: runtime.library.add(): argument 1 is a set"}},
		{cells: []string{"runtime._private"}, outcome: raised, contains: []string{"AttributeError"}},
		{cells: []string{"print(runtime.get_primitive_spec('library.add'))"}, contains: []string{"<primitive_spec>", `<parameter name="title" type="str" required="true"`}},
		{cells: []string{"runtime.get_primitive_spec('library.add', format='dict')['best_practices']"}, output: "['one at a time']"},
		{cells: []string{"await runtime.library.add.aio('Persuasion')"}, output: "3"},
		{cells: []string{"runtime.library.add('x')"}, names: true, output: "4", state: kept},

		{cells: []string{"runtime.selfref.context.remember(' the  user is kind ')"}, output: "{'id': 'exp_1', 'text': 'the user is kind'}"},
		{cells: []string{"i = runtime.selfref.context.inspect(); (i['active_key'], [e['text'] for e in i['experiences']], len(i['messages']))"}, output: "('main', ['the user is kind'], 2)"},
	}, many, []step{
		{cells: []string{"h = runtime.selfref.fork.spawn('\"secret\" in globals()')\nruntime.selfref.fork.gather_all(h)[h['fork_id']]['response']"}, output: "'False'"},
		{cells: []string{"secret = 41"}},
		live, gathered,

		{cells: []string{"h = runtime.selfref.fork.spawn('wait')\nruntime.selfref.fork.gather_all(h)"}, timeout: 2 * time.Second, outcome: timedOut, state: kept},
		{cells: []string{"r = runtime.selfref.fork.gather_all(h)[h['fork_id']]\nprint(r['status'], r['error_type'])"}, output: "error CancelledError"},
		{cells: []string{"import os, threading\nh = runtime.selfref.fork.spawn('wait')\nthreading.Timer(0.3, lambda: os.kill(os.getpid(), 9)).start()\nruntime.selfref.fork.gather_all(h)"}, outcome: lost, state: stateLost},
		{cells: []string{"[r['error_type'] for r in runtime.selfref.fork.gather_all().values() if r['status'] == 'error'][-1]"}, state: fresh, contains: []string{"CancelledError"}},

		{cells: []string{"q = runtime.selfref.context.compact('g', 'i', ['d'], [], 's', ['n'], [], remember=['kept'])\nprint(q['status'], runtime.selfref.context.inspect()['has_pending_compaction'])\n1/0"}, outcome: raised, contains: []string{"queued True"}},
		{cells: []string{"i = runtime.selfref.context.inspect(); (len(i['messages']), i['summary']['goal'], [e['id'] for e in i['experiences']], i['has_pending_compaction'])"}, output: "(2, 'g', ['exp_1', 'exp_2'], False)"},
	})
}

func TestRuntimePrimitives(t *testing.T) {
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			host, _ := runtimeHost(t, backend)
			s := host.Session("primitives", coppice.In(t.TempDir()))
			for i, st := range runtimeSteps(backend) {
				check(t, fmt.Sprintf("step %d: %s", i+1, strings.Join(st.cells, ";")), run(t, s, st), st, backend)
			}
			var names []string
			for e, err := range s.Stream(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "runtime.library.add('x')\nh = runtime.selfref.fork.spawn('1')\nprint(runtime.selfref.fork.gather_all(h)[h['fork_id']]['status'])"}}}) {
				require.NoError(t, err)
				switch e := e.(type) {
				case messages.HostEvent:
					names = append(names, e.Name)
				case messages.HostCallStep:
					require.Equal(t, messages.CallPrimitive, e.Kind)
				case messages.Stream:
					require.Equal(t, "completed\n", e.Text, "nothing is printed but what the code prints")
				}
			}
			require.Equal(t, []string{"added", "selfref_fork_spawned", "selfref_fork_start", "selfref_fork_end"}, names)
		})
	}
}

// badStore fails or hangs as its way says.
type badStore struct {
	selfref.Memory
	way   atomic.Value  // a string
	asked chan struct{} // has something when one begins that does not end by itself
	end   chan struct{}
}

func (s *badStore) Save(ctx context.Context, key string, list []selfref.Message) error {
	switch s.way.Load() {
	case "fails":
		return errors.New("the disk is full")
	case "heeds its context":
		s.asked <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	case "hangs":
		s.asked <- struct{}{}
		<-s.end
	}
	return s.Memory.Save(ctx, key, list)
}

// TestAStoreHoldsNoResult: a compaction that it does not save is reported, in a bounded
// time after the end of the caller's context.
func TestAStoreHoldsNoResult(t *testing.T) {
	for _, backend := range ofTheHost() {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			store := &badStore{asked: make(chan struct{}, 8), end: make(chan struct{})}
			defer close(store.end)
			commits := make(chan selfref.Commit, 8)
			host := start(t, backend, coppice.Options{HostCalls: coppice.HostCallOptions{Selfref: &coppice.Selfref{Store: store, OnCommit: func(c selfref.Commit) { commits <- c }}}})
			require.NoError(t, store.Save(t.Context(), "main", []selfref.Message{{Role: "user", Content: "hello"}}))
			s := host.Session("store", coppice.In(t.TempDir()))
			code := "runtime.selfref.context.compact('g', 'i', [], [], 's', [], [])['status']"
			for _, way := range []string{"fails", "heeds its context", "hangs"} {
				_, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "1"}}})
				require.NoError(t, err)
				store.way.Store(way)
				ctx, cancel := context.WithCancel(t.Context())
				begin := time.Now()
				go func() { // ends with the call, at the latest
					select {
					case <-store.asked: // the code has run
						cancel()
					case <-ctx.Done():
					}
				}()
				r, err := s.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}})
				cancel()
				require.NoError(t, err)
				require.Less(t, time.Since(begin), time.Minute)
				require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
				require.Len(t, r.Notices, 1)
				require.Contains(t, r.Text, "["+r.Notices[0]+"]")
				if way != "hangs" {
					require.Contains(t, r.Notices[0], `runtime.selfref: the conversation "main" was not compacted and is as it was`)
					require.Error(t, (<-commits).Err)
				}
			}
		})
	}
}

// TestForksEndWithTheirSession, and not with its variables.
func TestForksEndWithTheirSession(t *testing.T) {
	host, store := runtimeHost(t, backends.Runner)
	s := host.Session("life", coppice.In(t.TempDir()))
	do := func(code, want string) {
		t.Helper()
		r, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: code}}, Memory: "main", Owner: "someone"})
		require.NoError(t, err)
		require.Equal(t, want, r.Cells[0].Output, "what is told of the kernel before it depends on whether that has ended")
	}
	spawn := "h = runtime.selfref.fork.spawn('1')\nruntime.selfref.fork.gather_all(h)['fork_1']['response']"
	do(spawn, "'1'")
	require.NoError(t, s.Reset(t.Context()))
	r, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "len(runtime.selfref.fork.gather_all())"}}})
	require.NoError(t, err)
	require.Contains(t, r.Text, "1", "a reset takes the variables alone")
	for _, end := range []func() error{func() error { return s.Close(t.Context()) }, func() error { return host.ReleaseOwner(t.Context(), "someone") }} {
		require.NoError(t, end())
		require.Eventually(t, func() bool {
			keys, err := store.Keys(t.Context())
			return err == nil && len(keys) == 1
		}, 3*time.Minute, 10*time.Millisecond)
		do(spawn, "'1'")
	}
}
