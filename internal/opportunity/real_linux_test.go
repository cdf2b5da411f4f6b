package opportunity

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/process"
)

const (
	within = 60 * time.Second
	every  = 5 * time.Millisecond
)

func init() {
	play = func(role string) {
		switch role {
		case "watch": // tells what it saw of itself until it is asked
			var w Watch
			w.Start()
			m := Begin(nil, &w)
			fmt.Println("ready") //nolint:forbidigo // it is a program
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
			_ = json.NewEncoder(os.Stdout).Encode(m.Measure())
		case "threads":
			for range 10 {
				go func() { // ends with the process
					runtime.LockOSThread()
					_ = syscall.Pause()
				}()
			}
			fmt.Println("ready") //nolint:forbidigo // it is a program
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		}
	}
}

// child is a program of a test.
type child struct {
	*process.Process
	in  *os.File
	out *bufio.Reader
}

func start(t testing.TB, path string, env []string, args ...string) child {
	t.Helper()
	stdin, in, err := os.Pipe()
	require.NoError(t, err)
	out, stdout, err := os.Pipe()
	require.NoError(t, err)
	p, err := process.Start(process.Options{Path: path, Args: args, Env: env, Stdin: stdin, Log: stdout})
	require.NoError(t, err)
	require.NoError(t, stdin.Close())
	require.NoError(t, stdout.Close())
	t.Cleanup(func() {
		_ = p.Signal(os.Kill) // unless it has ended
		<-p.Done()
		_ = in.Close()
		_ = out.Close()
	})
	return child{p, in, bufio.NewReader(out)}
}

func (c child) tell(t testing.TB, line string) {
	t.Helper()
	_, err := c.in.WriteString(line + "\n")
	require.NoError(t, err)
}

func (c child) line(t testing.TB) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	return line
}

// role starts this binary as something else.
func role(t testing.TB, name string) child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	c := start(t, exe, []string{roleEnv + "=" + name, "GORACE=atexit_sleep_ms=0"})
	require.Equal(t, "ready\n", c.line(t))
	return c
}

func shell(t testing.TB, code string) child {
	t.Helper()
	return start(t, "/bin/sh", nil, "-c", code)
}

const burn = "while :; do :; done"

// pin leaves one processor to a child: the first that this process may use.
func pin(t *testing.T, c child) {
	t.Helper()
	var all, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	require.NoError(t, unix.SchedSetaffinity(c.PID(), &one))
}

// starve leaves a child what others of its processor do not want.
func starve(t *testing.T, c child) {
	t.Helper()
	pin(t, c)
	require.NoError(t, unix.SchedSetAttr(c.PID(), &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0))
}

func TestAProcessThatSharesAProcessorWaits(t *testing.T) {
	c, beside := shell(t, burn), shell(t, burn)
	pin(t, c)
	pin(t, beside)
	m := Begin(Processes(c.Identity()), nil)
	require.Equal(t, Waits, m.Measure().Known)
	var seen Measure
	require.Eventually(t, func() bool {
		seen = m.Measure()
		return seen.Waited >= time.Second/2 && seen.Ran >= time.Second/4
	}, within, 10*every)
	require.LessOrEqual(t, seen.Opportunity, seen.Wall-seen.Waited+every)
	const slack = 100 * time.Millisecond // the system counts what runs as rarely as it likes
	require.InDelta(t, seen.Wall, seen.Ran+seen.Waited, float64(slack+seen.Wall/4), "it wants to run all the time: %v", seen)
}

// A process that gets no processor is not given up, and has its answer in time when
// it gets one.
func TestAStarvedProcessIsWaitedFor(t *testing.T) {
	c, beside := shell(t, "read line; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"), shell(t, burn)
	starve(t, c)
	pin(t, beside)
	var watch Watch
	watch.Start()
	defer watch.Stop()
	c.tell(t, "go") // first: while it waits for that it has its chance, and this process may be late
	m := Begin(Processes(c.Identity()), &watch)
	err := Wait(t.Context(), Budget{Opportunity: time.Second, Ceiling: 3 * time.Second}, m, c.Done())
	var spent *SpentError
	require.ErrorAs(t, err, &spent)
	require.Equal(t, ByCeiling, spent.By, "%v", err)
	require.Greater(t, spent.Measure.Waited, 2*time.Second, "%v", err)
	require.NoError(t, beside.Signal(os.Kill))
	require.NoError(t, unix.SchedSetAttr(c.PID(), &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0))
	require.NoError(t, Wait(t.Context(), Budget{Opportunity: within}, m, c.Done()))
}

// Somebody who stops a process takes nothing from it that the machine owes it: it is
// told apart by its state.
func TestAStoppedProcessHasItsChance(t *testing.T) {
	c, beside := shell(t, burn), shell(t, burn)
	pin(t, c)
	pin(t, beside)
	require.NoError(t, c.Signal(syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		threads, err := process.Threads(c.Identity())
		return err == nil && threads[0].State == process.Halted
	}, within, every)
	m := Begin(Processes(c.Identity()), nil)
	err := Wait(t.Context(), Budget{Opportunity: time.Second / 2, Ceiling: within}, m, c.Done())
	var spent *SpentError
	require.ErrorAs(t, err, &spent)
	require.Equal(t, ByOpportunity, spent.By)
	threads, looked := process.Threads(c.Identity())
	require.True(t, spent.Measure.Stopped, "%+v; its threads are %+v, %v", spent.Measure, threads, looked)
	require.Zero(t, spent.Measure.Waited)
	require.Zero(t, spent.Measure.Ran)
	require.Equal(t, spent.Measure.Wall, spent.Measure.Opportunity)
	require.ErrorContains(t, err, "it is stopped by a signal")
}

func TestAProcessThatSleepsHasItsChance(t *testing.T) {
	c := shell(t, "read line")
	require.Eventually(t, func() bool {
		threads, err := process.Threads(c.Identity())
		return err == nil && threads[0].State == process.Asleep
	}, within, every)
	for name, s := range map[string]Subject{
		"alone": Processes(c.Identity(), process.Identity{}), "its tree": Tree(c.Identity()), "unknown": Processes(process.Identity{}),
	} {
		m := Begin(s, nil)
		var spent *SpentError
		require.ErrorAs(t, Wait(t.Context(), Budget{Opportunity: time.Second / 10}, m, c.Done()), &spent, name)
		require.Equal(t, spent.Measure.Wall, spent.Measure.Opportunity, name)
	}
}

// The tree of a process is it and what it has started.
func TestATreeWaits(t *testing.T) {
	c, beside := shell(t, "("+burn+") & wait"), shell(t, burn)
	var below []process.Identity
	require.Eventually(t, func() bool {
		var err error
		below, err = process.Descendants(c.Identity())
		return err == nil && len(below) == 1
	}, within, every)
	pin(t, beside)
	pin(t, child{Process: beside.Process}) // the same processor for both
	var one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(beside.PID(), &one))
	require.NoError(t, unix.SchedSetaffinity(below[0].PID, &one))
	m := Begin(Tree(c.Identity()), nil)
	require.Eventually(t, func() bool { return m.Measure().Waited > time.Second/4 }, within, 10*every)
}

// TestAProcessSeesThatItWasStopped stops a process that watches itself.
func TestAProcessSeesThatItWasStopped(t *testing.T) {
	begin := time.Now() // what it was late before it was stopped counts, too
	c := role(t, "watch")
	require.NoError(t, c.Signal(syscall.SIGSTOP))
	var threads []process.Thread
	var err error
	stands := func() bool { // a thread stops when it gets a processor
		threads, err = process.Threads(c.Identity())
		return err == nil && !slices.ContainsFunc(threads, func(t process.Thread) bool { return t.State != process.Halted })
	}
	require.Eventually(t, stands, within, every, "%+v %v", &threads, &err)
	m := Begin(Processes(c.Identity()), nil)
	const stopped = time.Second
	require.Eventually(t, func() bool { seen := m.Measure(); return seen.Stopped && seen.Wall > stopped }, within, every)
	require.NoError(t, c.Signal(syscall.SIGCONT))
	c.tell(t, "and now?")
	var seen Measure
	require.NoError(t, json.Unmarshal([]byte(c.line(t)), &seen))
	require.Greater(t, seen.Stalled, stopped-2*watchEvery)
	require.LessOrEqual(t, seen.Stalled, time.Since(begin))
	require.LessOrEqual(t, seen.Opportunity, seen.Wall-seen.Stalled)
	require.Equal(t, Nothing, seen.Known)
}

// Two programs that want the same processor press on the machine.
func TestPressure(t *testing.T) {
	a, b := shell(t, burn), shell(t, burn)
	pin(t, a)
	pin(t, b)
	require.Eventually(t, func() bool { return Pressure() > .2 }, within, 10*every)
	require.LessOrEqual(t, Pressure(), 1.)
}

// BenchmarkLook is what one look at a process of ten threads and more costs. On a
// machine that has other things to do, cpu-ns/op tells more than the time.
func BenchmarkLook(b *testing.B) {
	c := role(b, "threads")
	s := Processes(c.Identity())
	var threads []process.Thread
	require.Eventually(b, func() bool {
		threads, _ = process.Threads(c.Identity())
		return len(threads) >= 10
	}, within, every)
	used := func() time.Duration {
		var u unix.Rusage
		require.NoError(b, unix.Getrusage(unix.RUSAGE_THREAD, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := used()
	for b.Loop() {
		if _, err := s.Look(time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(used()-before)/float64(b.N*len(threads)), "cpu-ns/thread")
}
