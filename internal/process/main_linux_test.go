package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/process"
)

// roleEnv makes the test binary play a child instead of running tests.
const roleEnv = "COPPICE_TEST_ROLE"

// init keeps the main goroutine of a child that needs it on its first thread.
func init() {
	if os.Getenv(roleEnv) == "headless" {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(strings.Fields(role)))
	}
	goleak.VerifyTestMain(m)
}

// quickExit keeps the race detector of a child from sleeping a second at its end.
const quickExit = "GORACE=atexit_sleep_ms=0"

// child returns the options that start this binary in a role.
func child(role string, env ...string) process.Options {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return process.Options{Path: exe, Env: append(env, roleEnv+"="+role, quickExit)}
}

// play is what a child does.
func play(role []string) int {
	switch role[0] {
	case "wait": // until it is killed
		fmt.Fprintln(os.Stdout, "ready")
		forever()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stdout, "ready")
		forever()
	case "exit":
		var code int
		_, _ = fmt.Sscan(role[1], &code)
		return code
	case "env":
		fmt.Fprintln(os.Stdout, strings.Join(os.Environ(), "\n"))
	case "limit":
		var l unix.Rlimit
		waitForStdin()
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
			return 1
		}
		fmt.Fprintln(os.Stdout, l.Cur)
	case "flood":
		var lines int
		_, _ = fmt.Sscan(role[1], &lines)
		var b bytes.Buffer
		for i := range lines {
			fmt.Fprintf(&b, "line %07d\n", i)
		}
		_, _ = os.Stdout.Write(b.Bytes())
	case "fd3":
		_, _ = fmt.Fprint(os.NewFile(3, "extra"), "hello")
	case "parent": // starts a member of its own group, tells its pid, and waits or exits
		id := spawn(&syscall.SysProcAttr{})
		_ = json.NewEncoder(os.Stdout).Encode(id)
		if role[1] == "waits" {
			forever()
		}
	case "escapee": // starts a child in a session of its own that holds stdout
		id := spawn(&syscall.SysProcAttr{Setsid: true})
		_ = json.NewEncoder(os.Stdout).Encode(id)
		if role[1] == "waits" {
			forever()
		}
	case "owner": // starts what escapes, tells of it and of what started it, and waits
		var own process.Owner
		own.Use(role[1])
		o := process.Options{
			Path: "/bin/sh", Args: []string{"-c", daemons + "wait"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Owner: &own,
			Stdout: process.NewRing(process.RingOptions{}),
		}
		p, err := process.Start(o)
		if err != nil {
			return 1
		}
		_ = json.NewEncoder(os.Stdout).Encode(family(p, o.Stdout))
		forever()
	case "headless": // starts a child, tells of it, and goes on without its first thread
		_ = json.NewEncoder(os.Stdout).Encode(spawn(&syscall.SysProcAttr{}))
		go forever()
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0) // of this thread alone, see init
	case "blind": // has no descriptor for a while, and says what it sees of a child
		_ = json.NewEncoder(os.Stdout).Encode(look())
	case "host": // starts a child that dies with it
		p, err := process.Start(child("wait"))
		if err != nil {
			return 1
		}
		_ = json.NewEncoder(os.Stdout).Encode(p.Identity())
		forever()
	}
	return 0
}

// look tells what can be seen of a child without a descriptor, and later.
func look() (is blind) {
	p, err := process.Start(child("wait"))
	if err != nil {
		panic(err)
	}
	id := p.Identity()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		panic(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Max: was.Max}); err != nil {
		panic(err)
	}
	is.Alive, is.Ended, is.Awaited = process.Alive(id), process.Ended(id), process.Await(over, id) == nil
	is.Left = len(process.KillAll(over, []process.Identity{id}))
	for name, ask := range map[string]func() error{
		"identify": func() error { _, err := process.Identify(id.PID); return err },
		"below":    func() error { _, err := process.Descendants(id); return err },
		"threads":  func() error { _, err := process.Threads(id); return err },
		"marked":   func() error { _, err := process.Marked(1); return err },
		"tally":    func() error { _, err := process.Tally(1, []int{id.PID}); return err },
		"holding":  func() error { _, err := process.Holding("x"); return err },
	} {
		if err := ask(); err == nil || errors.Is(err, process.ErrNoProcess) {
			is.Told = append(is.Told, name)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		panic(err)
	}
	is.LaterAlive, is.LaterEnded = process.Alive(id), process.Ended(id)
	is.KilledThen = len(process.KillAll(context.Background(), []process.Identity{id})) == 0
	is.EndedThen = process.Ended(id)
	<-p.Done()
	return is
}

// family waits for what a child has started, and returns it with the child and its owner.
func family(p *process.Process, told *process.Ring) []process.Identity {
	for range time.Tick(time.Millisecond) {
		if strings.Count(told.String(), "\n") == 4 {
			break
		}
	}
	pids := []int{p.PID(), parentOf(p.PID())}
	for _, l := range told.Tail(4) {
		var pid int
		_, _ = fmt.Sscan(l, &pid)
		pids = append(pids, pid)
	}
	var all []process.Identity
	for _, pid := range pids {
		if id, err := process.Identify(pid); err == nil {
			all = append(all, id)
		}
	}
	return all
}

func parentOf(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	var parent int
	_, _ = fmt.Sscanf(string(b[bytes.LastIndexByte(b, ')')+3:]), "%d", &parent)
	return parent
}

func noNewPrivs() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// spawn starts a waiting child past this package, as any program would.
func spawn(attr *syscall.SysProcAttr) process.Identity {
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = []string{roleEnv + "=wait", quickExit}
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	id, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		panic(err)
	}
	return id
}

func waitForStdin() { _, _ = os.Stdin.Read(make([]byte, 1)) }

func forever() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	<-c
}
