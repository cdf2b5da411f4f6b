package custody_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/process"
)

// patience bounds every wait of the tests.
const patience = 2 * time.Minute

// long is how long something is kept that a test goes on with: when it fails, that ends
// then.
const long = 5 * time.Minute

// roleEnv makes the test binary play a host instead of running tests: the folder of
// custodies, how many sessions, and how long they are kept.
const roleEnv = "COPPICE_TEST_ROLE"

// quickExit keeps the race detector of a child from sleeping a second at its end.
const quickExit = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := play(strings.Split(role, "|")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// session is a program that remembers what it was told, prints lines, and has a process
// that has left its session.
const session = `
import os, signal, socket
s = socket.socket(fileno=3)
stray = os.fork()
if stray == 0:
    os.setsid()
    s.close()
    while True:
        signal.pause()
s.sendall(b"%d\n" % stray)
lines, said = s.makefile("rb"), b""
for line in lines:
    word = line.split()
    if word[0] == b"remember":
        said = word[1]
    elif word[0] == b"recall":
        s.sendall(said + b"\n")
    elif word[0] == b"print":
        for n in range(int(word[1])):
            s.sendall(b"line %d %s\n" % (n, b"." * 90))
        s.sendall(b"done\n")
`

const (
	lines  = 4000 // that a session prints: twice what its socket holds
	before = 7    // of them, that the first host reads
)

// told is what a host says of itself when it is ready.
type told struct {
	Custody   string
	Custodian process.Identity
	Processes []process.Identity // of the sessions, and what they have started
}

func python() string {
	if p := os.Getenv("COPPICE_TEST_PYTHON"); p != "" {
		return p
	}
	p, err := exec.LookPath("python3")
	if err != nil {
		panic(err)
	}
	return p
}

// play is a host with sessions: half of them print. It does not return.
func play(role []string) error {
	ctx := context.Background()
	n, err := strconv.Atoi(role[1])
	if err != nil {
		return err
	}
	keepFor, err := time.ParseDuration(role[2])
	if err != nil {
		return err
	}
	c, err := custody.Begin(ctx, custody.Options{Dir: role[0], Python: python(), KeepFor: keepFor})
	if err != nil {
		return err
	}
	var owner process.Owner
	owner.Use(python())
	owner.Outlive(func(files []*os.File) error {
		return c.Put(ctx, custody.Item{Name: "owner", Files: files, Common: true})
	})
	t := told{Custody: c.ID(), Custodian: c.Custodian()}
	for i := range n {
		ids, err := begin(ctx, c, &owner, i)
		if err != nil {
			return err
		}
		t.Processes = append(t.Processes, ids...)
	}
	if err := json.NewEncoder(os.Stdout).Encode(t); err != nil {
		return err
	}
	select {}
}

// begin starts a session and has it kept.
func begin(ctx context.Context, c *custody.Custody, owner *process.Owner, i int) ([]process.Identity, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "session"), os.NewFile(uintptr(fds[1]), "session")
	p, err := process.Start(process.Options{Path: python(), Args: []string{"-I", "-S", "-c", session}, Owner: owner, ExtraFiles: []*os.File{theirs}})
	if err != nil {
		return nil, err
	}
	_ = theirs.Close()
	line, err := readLine(ours)
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(line)
	if err != nil {
		return nil, err
	}
	stray, err := process.Identify(pid)
	if err != nil {
		return nil, err
	}
	note, err := json.Marshal(p.Identity())
	if err != nil {
		return nil, err
	}
	if err := c.Put(ctx, custody.Item{Name: name(i), Note: note, Files: []*os.File{ours}}); err != nil {
		return nil, err
	}
	ask := fmt.Sprintf("remember %d\n", i)
	if printing(i) {
		ask += fmt.Sprintf("print %d\n", lines)
	}
	if _, err := ours.WriteString(ask); err != nil {
		return nil, err
	}
	for n := 0; printing(i) && n < before; n++ {
		if line, err := readLine(ours); err != nil || !strings.HasPrefix(line, fmt.Sprintf("line %d ", n)) {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	return []process.Identity{p.Identity(), stray}, nil
}

func printing(i int) bool { return i%2 == 0 }

func name(i int) string { return fmt.Sprintf("session %03d", i) }

// readLine reads a line and nothing beyond it.
func readLine(f *os.File) (string, error) {
	var line []byte
	for one := make([]byte, 1); ; line = append(line, one[0]) {
		if n, err := f.Read(one); n == 0 || err != nil {
			return "", fmt.Errorf("the session has ended: %w", err)
		}
		if one[0] == '\n' {
			return string(line), nil
		}
	}
}

// host starts one, and returns what it says when all its sessions are kept. kill ends it
// with SIGKILL and returns when it is gone; it may be called again.
func host(t *testing.T, dir string, n int, keepFor time.Duration) (told, func()) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%v", roleEnv, dir, n, keepFor), quickExit)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var said told
	line, err := bufio.NewReader(out).ReadBytes('\n')
	over := false
	kill := func() {
		if !over {
			over = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(func() {
		kill()
		gone(t, append(said.Processes, said.Custodian)...)
	})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &said))
	return said, kill
}

// gone waits until processes have ended.
func gone(t *testing.T, ids ...process.Identity) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, id := range ids {
		if id.PID != 0 {
			require.NoError(t, process.Await(ctx, id), "process %d is left", id.PID)
		}
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
