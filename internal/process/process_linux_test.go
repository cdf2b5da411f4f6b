package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/process"
)

const patience = 3 * time.Minute

// start starts a child and ends it with the test.
func start(t *testing.T, o process.Options) *process.Process {
	t.Helper()
	p, err := process.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Stop(context.Background(), process.StopOptions{Grace: -1}))
	})
	return p
}

// line waits for the n-th line of a ring.
func line(t *testing.T, r *process.Ring, n int) string {
	t.Helper()
	var got string
	require.Eventually(t, func() bool {
		if lines := strings.SplitAfter(r.String(), "\n"); len(lines) > n {
			got = strings.TrimSpace(lines[n-1])
			return true
		}
		return false
	}, patience, 5*time.Millisecond, "no line %d in %q", n, r)
	return got
}

// object waits for a line that is an object: what the child has started may print first.
func object(t *testing.T, r *process.Ring) string {
	t.Helper()
	for n := 1; ; n++ {
		if text := line(t, r, n); strings.HasPrefix(text, "{") {
			return text
		}
	}
}

func identity(t *testing.T, text string) process.Identity {
	t.Helper()
	var id process.Identity
	require.NoError(t, json.Unmarshal([]byte(text), &id))
	return id
}

func gone(t *testing.T, id process.Identity) {
	t.Helper()
	require.Eventually(t, func() bool { return !process.Alive(id) }, patience, 5*time.Millisecond, "%v is alive", id)
}

func ended(t *testing.T, p *process.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		require.Fail(t, "the child has not ended")
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		role string
		kill syscall.Signal
		want error
		text string
	}{
		{role: "exit 0"},
		{role: "exit 3", want: &process.ExitError{Code: 3}, text: "exited with code 3"},
		{role: "wait", kill: syscall.SIGKILL, want: &process.ExitError{Code: -1, Signal: 9, Name: "killed"}, text: "was ended by signal 9 (killed)"},
		{role: "wait", kill: syscall.SIGTERM, want: &process.ExitError{Code: -1, Signal: 15, Name: "terminated"}, text: "was ended by signal 15 (terminated)"},
	}
	for _, tt := range tests {
		t.Run(tt.role+tt.kill.String(), func(t *testing.T) {
			t.Parallel()
			o := child(tt.role)
			o.Stdout = process.NewRing(process.RingOptions{})
			p := start(t, o)
			if tt.kill != 0 {
				line(t, o.Stdout, 1)
				require.NoError(t, p.Err(), "nothing is said of a child that runs")
				require.NoError(t, p.Signal(tt.kill))
			}
			ended(t, p)
			require.Equal(t, tt.want, p.Err())
			if tt.text != "" {
				require.EqualError(t, p.Err(), tt.text)
			}
			require.ErrorIs(t, p.Signal(syscall.SIGTERM), os.ErrProcessDone)
			require.False(t, process.Alive(p.Identity()))
		})
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	_, err := process.Start(process.Options{Path: "python"})
	require.EqualError(t, err, `start "python": the path of the program is not absolute`)
	_, err = process.Start(process.Options{Path: "/no/such/program"})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestEnvironmentIsOnlyWhatIsGiven(t *testing.T) {
	t.Setenv("COPPICE_HOST_SECRET", "s")
	o := child("env", "A=1")
	o.Stdout = process.NewRing(process.RingOptions{})
	ended(t, start(t, o))
	require.Equal(t, []string{"A=1", roleEnv + "=env", quickExit}, o.Stdout.Tail(100))
}

func TestExtraFiles(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	o := child("fd3")
	o.ExtraFiles = []*os.File{w}
	ended(t, start(t, o))
	require.NoError(t, w.Close())
	b := make([]byte, 16)
	n, err := r.Read(b)
	require.NoError(t, err)
	require.Equal(t, "hello", string(b[:n]))
}

func TestNoFileIsRaisedToTheHardLimitAtMost(t *testing.T) {
	t.Parallel()
	var l unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &l))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	o := child("limit")
	o.Stdin, o.Stdout = r, process.NewRing(process.RingOptions{})
	o.NoFile = l.Max + 1
	p := start(t, o)
	require.NoError(t, r.Close())
	require.NoError(t, w.Close()) // the child looks only now
	ended(t, p)
	require.Equal(t, []string{strconv.FormatUint(l.Max, 10)}, o.Stdout.Tail(1))
}

func TestFloodNeitherBlocksNorGrows(t *testing.T) {
	t.Parallel()
	const lines, width = 200_000, 13
	var mu sync.Mutex
	teed := 0
	o := child("flood " + strconv.Itoa(lines))
	o.Stdout = process.NewRing(process.RingOptions{Tee: func(p []byte) { mu.Lock(); teed += len(p); mu.Unlock() }})
	p := start(t, o)
	ended(t, p)
	require.NoError(t, p.Err())
	require.EqualValues(t, lines*width, o.Stdout.Written())
	require.Equal(t, lines*width, teed)
	require.LessOrEqual(t, len(o.Stdout.String()), process.DefaultRingSize)
	require.Equal(t, []string{"line 0199998", "line 0199999"}, o.Stdout.Tail(2))
}

func TestStop(t *testing.T) {
	t.Parallel()
	t.Run("a willing child ends by TERM", func(t *testing.T) {
		t.Parallel()
		o := child("wait")
		o.Stdout = process.NewRing(process.RingOptions{})
		p := start(t, o)
		line(t, o.Stdout, 1)
		require.NoError(t, p.Stop(t.Context(), process.StopOptions{Grace: patience}))
		require.Equal(t, &process.ExitError{Code: -1, Signal: 15, Name: "terminated"}, p.Err())
		require.NoError(t, p.Stop(t.Context(), process.StopOptions{}), "a second stop finds nothing to do")
	})
	t.Run("a stubborn one is killed after the grace", func(t *testing.T) {
		t.Parallel()
		o := child("stubborn")
		o.Stdout = process.NewRing(process.RingOptions{})
		p := start(t, o)
		line(t, o.Stdout, 1)
		begin := time.Now()
		require.NoError(t, p.Stop(t.Context(), process.StopOptions{Grace: 50 * time.Millisecond}))
		require.GreaterOrEqual(t, time.Since(begin), 50*time.Millisecond)
		require.Equal(t, &process.ExitError{Code: -1, Signal: 9, Name: "killed"}, p.Err())
	})
	t.Run("the end of ctx cuts the grace short and does not spare the child", func(t *testing.T) {
		t.Parallel()
		o := child("stubborn")
		o.Stdout = process.NewRing(process.RingOptions{})
		p := start(t, o)
		line(t, o.Stdout, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, p.Stop(ctx, process.StopOptions{Grace: time.Hour}))
		require.False(t, process.Alive(p.Identity()))
	})
	t.Run("several callers may stop one child", func(t *testing.T) {
		t.Parallel()
		p := start(t, child("stubborn"))
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() { errs[i] = p.Stop(context.Background(), process.StopOptions{Grace: time.Millisecond}) })
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	})
}

func TestGroupEndsWithItsLeader(t *testing.T) {
	t.Parallel()
	for _, leader := range []string{"waits", "exits"} {
		t.Run("the leader "+leader, func(t *testing.T) {
			t.Parallel()
			o := child("parent " + leader)
			o.Stdout = process.NewRing(process.RingOptions{})
			p := start(t, o)
			member := identity(t, object(t, o.Stdout))
			if leader == "waits" {
				require.True(t, process.Alive(member))
				require.NoError(t, p.Stop(t.Context(), process.StopOptions{}))
			}
			ended(t, p)
			gone(t, member)
		})
	}
}

func TestEscapeeHoldingTheOutputDoesNotHoldDone(t *testing.T) {
	t.Parallel()
	o := child("escapee exits")
	o.Stdout = process.NewRing(process.RingOptions{})
	p := start(t, o)
	ended(t, p)
	require.NoError(t, p.Err(), "an open pipe is not the child's failure")
	escapee := identity(t, object(t, o.Stdout))
	require.Empty(t, process.KillAll(t.Context(), []process.Identity{escapee}))
	require.False(t, process.Alive(escapee))
}

func TestChildSurvivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	type started struct {
		p   *process.Process
		tid int
	}
	c := make(chan started)
	go func() {
		// Never unlocked: the thread ends with this goroutine.
		runtime.LockOSThread()
		p, err := process.Start(child("wait"))
		if err != nil {
			panic(err)
		}
		c <- started{p, unix.Gettid()}
	}()
	s := <-c
	t.Cleanup(func() {
		require.NoError(t, s.p.Stop(context.Background(), process.StopOptions{Grace: -1}))
	})
	require.Eventually(t, func() bool {
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(s.tid))
		return os.IsNotExist(err) || s.tid == os.Getpid() // the first thread cannot end
	}, patience, 5*time.Millisecond)
	require.True(t, process.Alive(s.p.Identity()))
}

func TestChildDiesWithAKilledHost(t *testing.T) {
	t.Parallel()
	o := child("host")
	o.Stdout = process.NewRing(process.RingOptions{})
	host := start(t, o)
	grandchild := identity(t, object(t, o.Stdout))
	require.True(t, process.Alive(grandchild))
	require.NoError(t, host.Signal(syscall.SIGKILL))
	gone(t, grandchild)
}

func TestOutliveHostGetsItsOwnSession(t *testing.T) {
	t.Parallel()
	log, err := os.CreateTemp(t.TempDir(), "log")
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	o := child("wait")
	o.OutliveHost, o.Log = true, log
	p := start(t, o)
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(log.Name())
		return err == nil && string(b) == "ready\n"
	}, patience, 5*time.Millisecond)
	sid, err := unix.Getsid(p.PID())
	require.NoError(t, err)
	require.Equal(t, p.PID(), sid)
}

// What Confine changes holds for the child, and never for the host.
func TestConfineIsTheChildsAlone(t *testing.T) {
	t.Parallel()
	status := func(pid string) string {
		b, err := os.ReadFile("/proc/" + pid + "/status")
		require.NoError(t, err)
		return string(b)
	}
	for range 50 { // the scheduler is free to use the main thread
		out := process.NewRing(process.RingOptions{})
		p, err := process.Start(process.Options{
			Path: "/bin/sh", Args: []string{"-c", "grep NoNewPrivs /proc/self/status"}, Stdout: out,
			Confine: func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) },
		})
		require.NoError(t, err)
		<-p.Done()
		require.NoError(t, p.Err())
		require.Contains(t, out.String(), "NoNewPrivs:\t1")
		require.Contains(t, status("self"), "NoNewPrivs:\t0")
	}
	require.Eventually(t, func() bool { // threads of children that have ended are gone
		tasks, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		for _, task := range tasks {
			if b, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status"); err == nil && strings.Contains(string(b), "NoNewPrivs:\t1") {
				return false
			}
		}
		return true
	}, patience, 10*time.Millisecond)

	no := errors.New("no")
	_, err := process.Start(process.Options{Path: "/bin/sh", Confine: func() error { return no }})
	require.ErrorIs(t, err, no)
}
