package sharedgateway_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

// crowdDir makes the test binary a program that acquires the gateway in this
// folder, says what it got, and releases it.
const (
	crowdDir  = "COPPICE_TEST_CROWD_DIR"
	crowdMark = "COPPICE_TEST_CROWD"
)

// told is what a program of a crowd says.
type told struct {
	PID          int
	URL          string
	Lock, Answer time.Duration
	Launches     int
	Err          string
}

func playProgram(dir string) {
	var said told
	o, err := realOptions(context.Background(), dir)
	if err == nil {
		var lease *sharedgateway.Lease
		if lease, err = sharedgateway.Acquire(context.Background(), o); err == nil {
			said = told{PID: lease.Process.PID, URL: lease.URL, Lock: lease.Waits.Lock, Answer: lease.Waits.Answer, Launches: lease.Waits.Launches}
			lease.Release()
		}
	}
	if err != nil {
		said.Err = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(said)
	syscall.Exit(0) // not os.Exit: under the race detector it sleeps for a second
}

// realOptions are for gateways of the tests' Python.
func realOptions(ctx context.Context, dir string) (sharedgateway.Options, error) {
	rt, err := pyenv.Resolve(ctx, pyenv.Options{Python: os.Getenv("COPPICE_TEST_PYTHON")})
	// No filter: the mark is how the test finds what was started.
	rt.Env = os.Environ()
	return sharedgateway.Options{Dir: dir, Runtime: rt, Check: func(ctx context.Context) error {
		_, err := pyenv.Preflight(ctx, rt)
		return err
	}}, err
}

// crowd is a folder of gateways and the programs that use it.
type crowd struct{ dir, mark string }

func newCrowd(t *testing.T) crowd {
	t.Helper()
	c := crowd{dir: filepath.Join(t.TempDir(), "python-gateway"), mark: messages.NewID()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := sharedgateway.Stop(ctx, c.dir)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(proc.WithEnv(crowdMark, c.mark)) == 0 }, 3*time.Minute, 20*time.Millisecond,
			"left behind: %v", proc.WithEnv(crowdMark, c.mark))
		left, err := filepath.Glob(filepath.Join(os.TempDir(), "cpk-*", "shared.json"))
		require.NoError(t, err)
		for _, file := range left {
			data, _ := os.ReadFile(file)
			require.NotContains(t, string(data), c.dir, "a private directory is left behind")
		}
	})
	return c
}

// program starts one program; its answer, or nil when it was killed, goes to the
// channel.
func (c crowd) program(t *testing.T, answers chan<- *told) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), crowdDir+"="+c.dir, crowdMark+"="+c.mark, "COPPICE_TEST_PYTHON="+testpython.Path(t))
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	go func() { // ends with the program, whose answer the test waits for
		_ = cmd.Wait()
		said := &told{}
		if state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && state.Signaled() {
			said = nil
		} else if json.Unmarshal([]byte(out.String()), said) != nil {
			said.Err = out.String()
		}
		answers <- said
	}()
}

// watch looks for two gateways at the same time, in the process table, until the
// function that it returns is called: that says how often it looked, how many it
// has seen at once at most, and how many in all.
func (c crowd) watch() func() (looks, atOnce, inAll int) {
	stop := make(chan struct{})
	var looking sync.WaitGroup
	var looks, atOnce int
	all := map[string]bool{}
	looking.Go(func() {
		for {
			now := map[string]bool{}
			for _, p := range proc.WithEnv(crowdMark, c.mark) {
				// A gateway forks itself once: its folder is what names it.
				if _, folder, ok := strings.Cut(p.Command, "gateway.py "); ok {
					folder, _, _ = strings.Cut(folder, "/shared.json")
					now[folder], all[folder] = true, true
				}
			}
			looks, atOnce = looks+1, max(atOnce, len(now))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond): // a look costs 5 ms of a core
			}
		}
	})
	return func() (int, int, int) {
		close(stop)
		looking.Wait()
		return looks, atOnce, len(all)
	}
}

// holder returns the process that gateway.lock names, 0 when it is free.
func (c crowd) holder() int {
	data, _ := os.ReadFile(filepath.Join(c.dir, "gateway.lock"))
	var h struct{ Process process.Identity }
	_ = json.Unmarshal(data, &h)
	return h.Process.PID
}

// kill kills a program that holds the lock, some time after it was seen to, and
// reports whether it held it then: it is stopped first, so that it cannot let go
// between the look and the kill.
func (c crowd) kill(after time.Duration, over <-chan struct{}) bool {
	pid := 0
	for ; pid == 0; pid = c.holder() {
		select {
		case <-over:
			return false
		case <-time.After(200 * time.Microsecond):
		}
	}
	<-time.After(after)
	if c.holder() != pid || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return false
	}
	if c.holder() != pid {
		_ = syscall.Kill(pid, syscall.SIGCONT)
		return false
	}
	return syscall.Kill(pid, syscall.SIGKILL) == nil
}

// TestOneGatewayForManyPrograms starts programs at the same instant. In two of
// three rounds it kills programs that hold the lock; in the third the program that
// started the gateway, while that is on its way.
func TestOneGatewayForManyPrograms(t *testing.T) {
	programs, rounds, hits := 6, 3, 0
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		programs, rounds, hits = 20, 45, 30
	}
	var locks, starts []time.Duration
	var kills, orphaned, looks, gateways, all int
	for round := 0; round < rounds || (kills < hits && round < 3*rounds); round++ {
		c := newCrowd(t)
		stop := c.watch()
		answers := make(chan *told, programs)
		over := make(chan struct{})
		var killing sync.WaitGroup
		killing.Go(func() {
			if round%3 == 2 {
				// The first to hold the lock starts the gateway and lets the lock go.
				pid := 0
				for ; pid == 0; pid = c.holder() {
					select {
					case <-over:
						return
					case <-time.After(200 * time.Microsecond):
					}
				}
				<-time.After(time.Duration(rand.IntN(1000)) * time.Millisecond) //nolint:gosec // any moment will do
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					orphaned++
				}
				return
			}
			for { // until it has hit once
				select {
				case <-over:
					return
				default:
				}
				if c.kill(time.Duration(rand.IntN(5000))*time.Microsecond, over) { //nolint:gosec // as above
					kills++
					return
				}
			}
		})
		for range programs {
			c.program(t, answers)
		}
		pids, died := map[int]bool{}, 0
		for range programs {
			said := <-answers
			if said == nil {
				died++
				continue
			}
			require.Empty(t, said.Err)
			pids[said.PID] = true
			locks, starts = append(locks, said.Lock), append(starts, said.Answer)
		}
		close(over)
		killing.Wait()
		seen, atOnce, inAll := stop()
		all, looks, gateways = all+1, looks+seen, gateways+inAll
		require.LessOrEqual(t, died, 1)
		require.Len(t, pids, 1, "all use one gateway")
		require.Equal(t, 1, atOnce, "gateways at once")
		running, err := sharedgateway.Look(t.Context(), c.dir)
		require.NoError(t, err)
		require.Len(t, running, 1)
		require.Equal(t, sharedgateway.StateRunning, running[0].State)
		require.Zero(t, running[0].Hosts)
		require.Equal(t, sharedgateway.DefaultMaxKernels, running[0].MaxKernels, "its sockets are bounded")
	}
	slices.Sort(locks)
	slices.Sort(starts)
	t.Logf("%d programs at a time: %d killed while they held the lock, %d while the gateway they had started was on its way", programs, kills, orphaned)
	t.Logf("the wait for the lock: p50 %v, slowest %v; for the gateway's answer: p50 %v, slowest %v", locks[len(locks)/2], locks[len(locks)-1], starts[len(starts)/2], starts[len(starts)-1])
	t.Logf("%d looks at the process table: never two gateways at once, %d in %d rounds", looks, gateways, all)
	require.GreaterOrEqual(t, kills, hits)
}
