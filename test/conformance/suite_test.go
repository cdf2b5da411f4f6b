//go:build linux

package conformance_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/starve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{m}) }

// suite says in the end how many cases have run.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	code := s.m.Run()
	if err := endPlain(); err != nil {
		fmt.Fprintln(os.Stderr, "a host that tests share:", err)
		code = max(code, 1)
	}
	starve.Note()
	cases.mu.Lock()
	defer cases.mu.Unlock()
	for _, backend := range slices.Sorted(maps.Keys(cases.ran)) {
		_, _ = fmt.Fprintf(os.Stdout, "conformance: %d cases on the %s\n", cases.ran[backend], backend)
	}
	return code
}

// cases counts the cases that held.
var cases struct {
	mu  sync.Mutex
	ran map[string]int // by backend; guarded by mu
}

// held counts a case when its test ends, unless it failed.
func held(t *testing.T, backend string) {
	t.Helper()
	if strings.HasPrefix(t.Name(), "TestConformanceOf") {
		backend += " backend with a server of another kind" // the same cases once more
	} else {
		backend += " backend"
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		cases.mu.Lock()
		defer cases.mu.Unlock()
		if cases.ran == nil {
			cases.ran = map[string]int{}
		}
		cases.ran[backend]++
	})
}

// How many sessions of a host run behaviours at the same time. Most behaviours wait
// for something most of the time.
const (
	sharedAtOnce = 3
	aloneAtOnce  = 2
)

// full says that the long form of a test is wanted.
var full = os.Getenv("COPPICE_TEST_FULL") != ""

// ofTheHost are the backends of tests about what a host does whatever its kernels are,
// which a kernel of Jupyter's takes seconds of processor time for: the runner alone. In the
// full run, and among the tests of a starved machine, they are both.
func ofTheHost() []string {
	if full || os.Getenv(starve.Variable) != "" {
		return []string{backends.Gateway, backends.Runner}
	}
	return []string{backends.Runner}
}

// runAll runs a table of behaviours. Those that need no new kernel, and leave
// theirs alive, share a few sessions, where they run one after the other with a
// reset of the names between them: a behaviour has to hold whatever ran before it.
// Each of the others has a session of its own.
func runAll(t *testing.T, host *coppice.Host, backend string, table map[string][]step) {
	t.Helper()
	var shared, alone []string
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if shareable(table[name]) {
			shared = append(shared, name)
		} else {
			alone = append(alone, name)
		}
	}
	one := func(name string, s *coppice.Session, last bool) {
		t.Run(name, func(t *testing.T) {
			held(t, backend)
			for i, st := range table[name] {
				check(t, fmt.Sprintf("step %d", i+1), run(t, s, st), st, backend)
			}
			if last {
				require.NoError(t, s.Close(t.Context()))
			}
		})
	}
	var wg sync.WaitGroup
	for first := range sharedAtOnce {
		wg.Go(func() {
			s := host.Session(fmt.Sprintf("shared-%d", first), coppice.In(t.TempDir()))
			for i := first; i < len(shared); i += sharedAtOnce {
				if i > first {
					r, err := s.Execute(t.Context(), coppice.Request{ResetNames: true, Cells: []messages.Cell{{Code: "None"}}})
					if err != nil || r.Outcome != messages.OutcomeOK {
						t.Errorf("reset the names before %q: %v %s", shared[i], err, r.Text)
					}
				}
				one(shared[i], s, false)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("close a session: %v", err)
			}
		})
	}
	slots := make(chan struct{}, aloneAtOnce)
	for _, name := range alone {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			one(name, host.Session(name, coppice.In(t.TempDir())), true)
		})
	}
	wg.Wait()
}

// shareable says whether a behaviour can run in a kernel that has served others,
// and leaves it alive.
func shareable(steps []step) bool {
	for _, st := range steps {
		if st.state == fresh || st.state == stateLost || st.outcome == lost || st.reset || st.mode == messages.ModePerCall {
			return false
		}
		for _, code := range st.cells {
			// What is said of a kernel as such, or changed in it for good.
			if strings.Contains(code, "__del__") || strings.Contains(code, "sys.modules") {
				return false
			}
		}
	}
	return true
}
