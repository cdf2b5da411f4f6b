package outlive_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

// roleEnv makes the test binary a host that is to be killed: a role, as JSON.
const roleEnv = "COPPICE_TEST_ROLE"

// marker is in the environment of all that a test starts.
const marker = "COPPICE_TEST_OUTLIVE"

// patience bounds every wait.
const patience = 4 * time.Minute

// role is what a host does: it makes sessions, each of which knows its number, and begins a
// call in the first ones.
type role struct {
	Home, Python, Mark string
	Sessions           int
	Calls              [][]string // the cells of each
	KeepFor            time.Duration
	Leave              bool // it leaves when its standard input ends
	Shut               bool // it is shut down then
	Plain              bool // without KeepSessions
	// Setup is what each session runs first, in place of noting its number; Asleep has it be
	// written to disk then.
	Setup  string
	Asleep bool
	Policy hibernate.Policy
	// Gateway has sessions be kernels of a shared gateway; Reset has the calls reset first.
	Gateway bool
	Reset   bool
	// Serve has it make the calls that are asked for, with at most so many kernels, each of which
	// is idle for so long at most.
	Serve bool
	Most  int
	Idle  time.Duration
}

// said is a line of such a host.
type said struct {
	Session string           `json:"session"`
	Exec    string           `json:"exec,omitempty"`
	Event   json.RawMessage  `json:"event,omitempty"`
	Ready   bool             `json:"ready,omitempty"`
	Called  bool             `json:"called,omitempty"` // the host function was
	Killed  string           `json:"killed,omitempty"`
	Dead    bool             `json:"dead,omitempty"` // Killed was killed; else it is about to be
	Result  *messages.Result `json:"result,omitempty"`
	Err     string           `json:"err,omitempty"`
}

func TestMain(m *testing.M) {
	if text := os.Getenv(roleEnv); text != "" {
		var r role
		err := json.Unmarshal([]byte(text), &r)
		if err == nil {
			err = r.play()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func (r role) options() coppice.Options {
	env := append(os.Environ(), marker+"="+r.Mark)
	backend := coppice.Runner(coppice.RunnerOptions{})
	if r.Gateway {
		backend = coppice.Gateway(coppice.GatewayOptions{Shared: true, WarmKernels: -1, Idle: time.Second})
	}
	var functions []coppice.HostFunction
	if r.Gateway {
		functions = []coppice.HostFunction{{Name: "other", Description: "does nothing", Call: func(context.Context, json.RawMessage) (any, error) { return nil, nil }}} //nolint:nilnil // it returns None
	}
	most, idle := 400, time.Duration(-1)
	if r.Most > 0 {
		most, idle = r.Most, r.Idle
	}
	return coppice.Options{
		HostCalls: coppice.HostCallOptions{Functions: functions}, // a gateway has no calls of the host otherwise
		Backend:   backend, Home: r.Home, Python: r.Python, Env: env, KeepSessions: !r.Plain, KeepFor: r.KeepFor,
		MaxSessions: most, Timeout: coppice.NoTimeout, IdleTTL: idle, Hibernate: r.Policy,
	}
}

// play is the host.
func (r role) play() error {
	ctx := context.Background()
	host, err := coppice.Start(ctx, r.options())
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	tell := func(s said) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(s)
	}
	for i := range r.Sessions {
		s := host.Session(name(i), coppice.In(r.Home))
		code := r.Setup
		if code == "" {
			code = fmt.Sprintf("x = %d", i)
		}
		result, err := s.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}, Owner: "owner"})
		if err == nil {
			err = result.Err()
		}
		if err == nil && r.Asleep {
			_, err = s.Hibernate(ctx)
			for had := true; had && err == nil; { // its kernel has ended
				_, had, err = host.Find(ctx, s.Key())
				runtime.Gosched()
			}
		}
		if err != nil {
			return err
		}
	}
	for i, cells := range r.Calls {
		go r.call(ctx, host, i, cells, tell)
	}
	tell(said{Ready: true})
	if r.Serve {
		return r.serve(ctx, host, tell)
	}
	if r.Leave {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		if r.Shut {
			host.Shutdown(ctx)
		} else {
			host.Leave(ctx)
		}
		return nil
	}
	select {}
}

// call runs the call of one session.
func (r role) call(ctx context.Context, host *coppice.Host, i int, cells []string, tell func(said)) {
	request := coppice.Request{ID: "call-" + name(i), Owner: "owner", Reset: r.Reset, AllowStdin: true, HostFunctions: []coppice.HostFunction{{
		Name: "never", Description: "does not return", Call: func(ctx context.Context, _ json.RawMessage) (any, error) {
			tell(said{Session: name(i), Called: true})
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}}}
	for _, code := range cells {
		request.Cells = append(request.Cells, messages.Cell{Code: code})
	}
	for e, err := range host.Session(name(i), coppice.In(r.Home)).Stream(ctx, request) {
		s := said{Session: name(i), Exec: request.ID}
		if err != nil {
			s.Err = err.Error()
		} else if s.Event, err = messages.AppendEvent(nil, e); err != nil {
			s.Err = err.Error()
		}
		tell(s)
	}
}

func name(i int) string { return fmt.Sprintf("s%d", i) }

// victim is a host that is to be killed.
type victim struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
	stdin io.WriteCloser
	over  bool
	ready bool
	last  said
	seen  map[string][]messages.Event // what it has handed on, by session
	calls int                         // of the host function
}

// begin starts a host.
func begin(t *testing.T, r role) *victim {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	v := &victim{cmd: cmd, lines: bufio.NewReader(out), stdin: stdin, seen: map[string][]messages.Event{}}
	t.Cleanup(v.kill)
	return v
}

// kill ends it with SIGKILL, and reads what it had handed on.
func (v *victim) kill() {
	if v.over {
		return
	}
	v.over = true
	_ = v.cmd.Process.Kill()
	for v.next() == nil { // a line that was cut off is none
	}
	_ = v.cmd.Wait()
}

// next reads a line.
func (v *victim) next() error {
	text, err := v.lines.ReadString('\n')
	if err != nil {
		return err
	}
	var s said
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	if s.Err != "" {
		return fmt.Errorf("%s: %s", s.Session, s.Err)
	}
	if s.Called {
		v.calls++
	}
	v.ready, v.last = v.ready || s.Ready, s
	if s.Event != nil {
		e, err := messages.ParseEvent(s.Event)
		if err != nil {
			return err
		}
		v.seen[s.Session] = append(v.seen[s.Session], e)
	}
	return nil
}

// until reads until a condition holds.
func (v *victim) until(t *testing.T, done func() bool) {
	t.Helper()
	for !done() {
		require.NoError(t, v.next())
	}
}

// newRole has a home, with a look at its end whether something is left.
func newRole(t *testing.T) role {
	t.Helper()
	return newRoleOf(t, false)
}

// newRoleOf is newRole for a backend.
func newRoleOf(t *testing.T, gateway bool) role {
	t.Helper()
	r := role{Home: t.TempDir(), Python: testpython.Path(t), Mark: messages.NewID(), KeepFor: 5 * time.Minute, Gateway: gateway}
	t.Cleanup(func() { r.gone(t) })
	return r
}

// gone waits until nothing that was started is left.
func (r role) gone(t *testing.T) {
	t.Helper()
	if r.Gateway {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := jupyter.StopShared(ctx, filepath.Join(r.Home, ".coppice"))
		require.NoError(t, err)
	}
	r.left(t)
}

// left waits until nothing is left by itself.
func (r role) left(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(proc.WithEnv(marker, r.Mark)) == 0 }, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool { // a custodian removes its folder when it has let go of everything
		found, err := filepath.Glob(filepath.Join(r.Home, ".coppice", "kept", "*", "*"))
		return err == nil && len(found) == 0
	}, patience, 20*time.Millisecond)
}

// next is the host that comes after.
func next(t *testing.T, r role) *coppice.Host {
	t.Helper()
	host, err := coppice.Start(t.Context(), r.options())
	require.NoError(t, err)
	t.Cleanup(func() { host.Shutdown(context.Background()) })
	return host
}

// textOf is what a cell has printed, of its events.
func textOf(events []messages.Event) string {
	var b strings.Builder
	for _, e := range events {
		if s, is := e.(messages.Stream); is {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}
