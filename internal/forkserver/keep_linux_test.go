package forkserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/forkserver"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/test/proc"
)

// host starts one that begins sessions, and waits until all of them are kept. kill ends it
// with SIGKILL, and returns when it is gone.
func host(t *testing.T, dir string, n int, keepFor time.Duration) (said told, kill func()) {
	t.Helper()
	out, kill := start(t, dir, strconv.Itoa(n), keepFor.String(), python(t))
	for range n {
		require.Regexp(t, "^kept", out())
	}
	require.NoError(t, json.Unmarshal([]byte(out()), &said))
	return said, kill
}

// start starts a host in a role. out returns the next line that it prints.
func start(t *testing.T, role ...string) (out func() string, kill func()) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleEnv+"="+strings.Join(role, "|"), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(pipe)
	over := false
	kill = func() {
		if !over {
			over = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	return func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			kill()
		}
		require.NoError(t, err)
		return line
	}, kill
}

// gone waits until everything of a host has ended.
func gone(t *testing.T, said told) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ids := []process.Identity{said.Custodian, said.Server}
	for _, s := range said.Sessions {
		ids = append(ids, s.Process, s.Stray)
	}
	for _, id := range ids {
		require.NoError(t, process.Await(ctx, id), "process %d is left", id.PID)
	}
}

// crowd is how many sessions a host has.
func crowd() int {
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		return 200
	}
	return 20
}

// TestSessionsOutliveAKilledHost: the next host goes on with all of them. What a cell
// printed meanwhile comes without a gap and not twice, and variables are as they were.
func TestSessionsOutliveAKilledHost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	said, kill := host(t, dir, crowd(), long)
	kill()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := custody.Take(ctx, custody.Options{Dir: dir}, said.Custody)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.End(context.Background()) })
	require.Len(t, c.Names(), crowd())
	expected := all()
	var adopted []*forkserver.Child
	for i, s := range said.Sessions {
		child, w := adopt(t, c, i)
		adopted = append(adopted, child)
		if s.Printing {
			rest, err := w.rest(2)
			require.NoError(t, err)
			require.Equal(t, expected[s.Read:], rest)
		}
		text, err := w.run(3, "print(x)")
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i)+"\n", text)
	}
	// A session that ends does so by itself, and is known to.
	require.NoError(t, adopted[0].Stop(ctx, process.StopOptions{Grace: -1}))
	<-adopted[0].Done()
	var lost *forkserver.LostError
	require.ErrorAs(t, adopted[0].Err(), &lost)
	require.False(t, lost.Copy)
	kept, err := c.Hand(ctx, "0")
	require.NoError(t, err)
	_, err = forkserver.Adopt(said.Sessions[0].Process, kept.Files)
	require.ErrorAs(t, err, &lost)
	for _, s := range said.Sessions[1:] {
		require.True(t, process.Alive(s.Process))
	}

	require.NoError(t, c.End(ctx))
	gone(t, said)
	for _, child := range adopted {
		<-child.Done()
		child.Close()
	}
}

func adopt(t *testing.T, c *custody.Custody, i int) (*forkserver.Child, wire) {
	t.Helper()
	item, err := c.Hand(t.Context(), strconv.Itoa(i))
	require.NoError(t, err)
	var n note
	require.NoError(t, json.Unmarshal(item.Note, &n))
	child, err := forkserver.Adopt(n.Process, item.Files)
	require.NoError(t, err)
	require.ErrorIs(t, child.Keep(func([]*os.File) error { return nil }), forkserver.ErrNotKept) // the custodian has its own
	require.NoError(t, child.Main.SetReadDeadline(time.Now().Add(patience)))
	return child, wire{child: child, mark: n.Mark, lines: ndjson.NewReader(child.MainReader(), ndjson.MaxFrame)}
}

// TestHostsAreKilledOneAfterAnother: what each has done is there for the next.
func TestHostsAreKilledOneAfterAnother(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	const n = 4
	begin, kill := start(t, dir, strconv.Itoa(n), long.String(), python(t))
	for range n {
		require.Regexp(t, "^kept", begin())
	}
	var said told
	require.NoError(t, json.Unmarshal([]byte(begin()), &said))
	kill()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, s := range said.Sessions { // whose cells nobody has read to their end
		if s.Printing {
			drain(t, dir, said.Custody, i)
		}
	}
	out, kill := start(t, dir, "0", long.String(), python(t), said.Custody)
	out()
	kill()
	c, err := custody.Take(ctx, custody.Options{Dir: dir}, said.Custody)
	require.NoError(t, err)
	for i := range n {
		child, w := adopt(t, c, i)
		text, err := w.run(4, "print(y)")
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i+1)+"\n", text)
		require.NoError(t, child.Stop(ctx, process.StopOptions{Grace: -1}))
		child.Close()
	}
	require.NoError(t, c.End(ctx))
	gone(t, said)
}

// drain is a host that reads the rest of one session's cell, and leaves it to the next.
func drain(t *testing.T, dir, id string, i int) {
	t.Helper()
	c, err := custody.Take(t.Context(), custody.Options{Dir: dir}, id)
	require.NoError(t, err)
	item, err := c.Hand(t.Context(), strconv.Itoa(i))
	require.NoError(t, err)
	var n note
	require.NoError(t, json.Unmarshal(item.Note, &n))
	require.NoError(t, item.Files[0].SetReadDeadline(time.Now().Add(patience)))
	_, err = wire{mark: n.Mark, lines: ndjson.NewReader(item.Files[0], ndjson.MaxFrame)}.rest(2)
	require.NoError(t, err)
	for _, f := range item.Files {
		require.NoError(t, f.Close())
	}
	require.NoError(t, c.Leave(t.Context()))
}

// TestAHostIsKilledWhileItsSessionsBegin: what it said to be kept is there, and nothing is
// left of the rest.
func TestAHostIsKilledWhileItsSessionsBegin(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, 6} {
		dir := filepath.Join(t.TempDir(), "kept")
		role := []string{dir, "1000", long.String(), python(t)}
		out, kill := start(t, role...)
		for range after {
			require.Regexp(t, "^kept", out())
		}
		kill()
		found, err := custody.Scan(t.Context(), dir)
		require.NoError(t, err)
		require.Len(t, found, 1)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c, err := custody.Take(ctx, custody.Options{Dir: dir}, found[0].ID)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(c.Names()), after)
		for i := range after {
			child, w := adopt(t, c, i)
			if i%2 == 0 {
				_, err := w.rest(2)
				require.NoError(t, err)
			}
			text, err := w.run(3, "print(x)")
			require.NoError(t, err)
			require.Equal(t, strconv.Itoa(i)+"\n", text)
			require.NoError(t, child.Stop(ctx, process.StopOptions{Grace: -1}))
			child.Close()
		}
		require.NoError(t, c.End(ctx))
		require.Eventually(t, func() bool { return len(proc.WithEnv(roleEnv, strings.Join(role, "|"))) == 0 }, patience, 10*time.Millisecond)
	}
}

// TestSessionsForWhomNobodyComes end, with all that they have started.
func TestSessionsForWhomNobodyComes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	said, kill := host(t, dir, 4, 300*time.Millisecond)
	kill()
	gone(t, said)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestSessionsEndWithTheirLifeline: in order, a host ends what no one else holds.
func TestSessionsEndWithTheirLifeline(t *testing.T) {
	t.Parallel()
	life, err := forkserver.NewLifeline()
	require.NoError(t, err)
	s, err := forkserver.Launch(t.Context(), forkserver.Options{Python: python(t), Env: os.Environ(), Lifeline: life})
	require.NoError(t, err)
	child, err := s.Fork(nil, nil)
	require.NoError(t, err)
	w := wire{child: child, lines: oneByOne{child.Main}}
	require.NoError(t, w.ask(ndjson.Request{Type: ndjson.TypeInit, Version: ndjson.Version}))
	f, err := w.next()
	require.NoError(t, err)
	require.Equal(t, ndjson.TypeReady, f.Type)
	child.Known(f.PID)
	require.NoError(t, life.Close())
	<-child.Done()
	child.Close()
	require.NoError(t, s.Close(context.Background()))
}
