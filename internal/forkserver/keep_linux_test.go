package forkserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
)

// roleEnv makes the test binary play a host instead of running tests: the folder of
// custodies, how many sessions, how long they are kept, and the interpreter.
const roleEnv = "COPPICE_TEST_ROLE"

// patience bounds every wait.
const patience = 2 * time.Minute

const (
	printed = 4000 // lines that a cell prints: more than its socket holds
	before  = 5    // frames of it that the first host reads
)

// told is what a host says when all its sessions are kept.
type told struct {
	Custody   string
	Custodian process.Identity
	Server    process.Identity
	Sessions  []begun
}

// begun is a session, with what has left its process group, and how much of what it prints
// was read.
type begun struct {
	Process, Stray process.Identity
	Read           int
	Printing       bool
}

// note is what the next host learns of a session.
type note struct {
	Process process.Identity
	Mark    string
}

// printing is the cell in whose middle a host is killed, and all that it prints.
var printing = fmt.Sprintf("for n in range(%d): print('line', n, '.' * 90)", printed)

func all() string {
	var b strings.Builder
	for n := range printed {
		fmt.Fprintf(&b, "line %d %s\n", n, strings.Repeat(".", 90))
	}
	return b.String()
}

// play is a host. It returns only when it fails.
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
	c, err := custody.Begin(ctx, custody.Options{Dir: role[0], Python: role[3], KeepFor: keepFor})
	if err != nil {
		return err
	}
	life, err := forkserver.NewLifeline()
	if err == nil {
		err = c.Put(ctx, custody.Item{Name: "lifeline", Files: []*os.File{life.File()}, Common: true})
	}
	if err != nil {
		return err
	}
	var owner process.Owner
	owner.Use(role[3])
	owner.Outlive(func(files []*os.File) error {
		return c.Put(ctx, custody.Item{Name: "owner", Files: files, Common: true})
	})
	s, err := forkserver.Launch(ctx, forkserver.Options{Python: role[3], Env: os.Environ(), Owner: &owner, Lifeline: life})
	if err != nil {
		return err
	}
	t := told{Custody: c.ID(), Custodian: c.Custodian(), Server: s.Identity()}
	for i := range n {
		one, err := begin(ctx, s, c, i)
		if err != nil {
			return err
		}
		t.Sessions = append(t.Sessions, one)
	}
	if err := json.NewEncoder(os.Stdout).Encode(t); err != nil {
		return err
	}
	select {}
}

// begin starts a session that remembers its number and may be in the middle of a cell.
func begin(ctx context.Context, s *forkserver.Server, c *custody.Custody, i int) (b begun, err error) {
	child, err := s.Fork(nil, nil)
	if err != nil {
		return b, err
	}
	w := wire{child: child, mark: fmt.Sprintf("mark%d", i), lines: oneByOne{child.Main}}
	if err := w.ask(ndjson.Request{Type: ndjson.TypeInit, Version: ndjson.Version, Mark: w.mark}); err != nil {
		return b, err
	}
	ready, err := w.next()
	if err != nil || ready.Type != ndjson.TypeReady {
		return b, fmt.Errorf("%+v: %w", ready, err)
	}
	child.Known(ready.PID)
	text, err := w.run(1, fmt.Sprintf("import subprocess\nx = %d\nprint(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)", i))
	if err != nil {
		return b, err
	}
	stray, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return b, err
	}
	if b.Stray, err = process.Identify(stray); err != nil {
		return b, err
	}
	if b.Process, err = process.Identify(ready.PID); err != nil {
		return b, err
	}
	known, err := json.Marshal(note{b.Process, w.mark})
	if err != nil {
		return b, err
	}
	err = child.Keep(func(files []*os.File) error {
		return c.Put(ctx, custody.Item{Name: strconv.Itoa(i), Note: known, Files: files})
	})
	if b.Printing = i%2 == 0; err != nil || !b.Printing {
		return b, err
	}
	if err := w.ask(ndjson.Request{Type: ndjson.TypeExecute, ID: 2, Code: &printing}); err != nil {
		return b, err
	}
	for range before {
		f, err := w.next()
		if err != nil {
			return b, err
		}
		b.Read += len(f.Text)
	}
	return b, nil
}

// wire is what a host says to a session.
type wire struct {
	child *forkserver.Child
	mark  string
	lines interface{ Next() ([]byte, error) }
}

// oneByOne reads lines and nothing beyond them: what a host that is killed had read is
// gone with it.
type oneByOne struct{ f *os.File }

func (r oneByOne) Next() ([]byte, error) {
	var line []byte
	for one := make([]byte, 1); ; line = append(line, one[0]) {
		if _, err := r.f.Read(one); err != nil {
			return nil, err
		}
		if one[0] == '\n' {
			return line, nil
		}
	}
}

func (w wire) ask(r ndjson.Request) error {
	line, err := ndjson.AppendRequest(nil, r)
	if err == nil {
		_, err = w.child.Main.Write(line)
	}
	return err
}

func (w wire) next() (ndjson.Frame, error) {
	line, err := w.lines.Next()
	if err != nil {
		return ndjson.Frame{}, err
	}
	return ndjson.ParseFrame(bytes.TrimPrefix(line, []byte(w.mark)))
}

// run runs a cell and returns what it prints.
func (w wire) run(id uint64, code string) (string, error) {
	if err := w.ask(ndjson.Request{Type: ndjson.TypeExecute, ID: id, Code: &code}); err != nil {
		return "", err
	}
	return w.rest(id)
}

// rest returns what a cell prints from now on. Its frames have to be without a gap.
func (w wire) rest(id uint64) (string, error) {
	var text strings.Builder
	for last := uint64(0); ; {
		f, err := w.next()
		switch {
		case err != nil:
			return "", err
		case f.ID != id:
			return "", fmt.Errorf("a frame of cell %d among those of %d", f.ID, id)
		case last != 0 && f.Seq != last+1:
			return "", fmt.Errorf("frame %d after frame %d", f.Seq, last)
		case f.Type == ndjson.TypeDone && !f.OK:
			return "", fmt.Errorf("cell %d has failed: %q", id, text.String())
		case f.Type == ndjson.TypeDone:
			return text.String(), nil
		}
		last = f.Seq
		text.WriteString(f.Text)
	}
}

// host starts one. kill ends it with SIGKILL, and returns when it is gone.
func host(t *testing.T, dir string, n int, keepFor time.Duration) (said told, kill func()) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%v|%s", roleEnv, dir, n, keepFor, python(t)), "GORACE=atexit_sleep_ms=0")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadBytes('\n')
	over := false
	kill = func() {
		if !over {
			over = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	if err != nil {
		kill()
	}
	require.NoError(t, err, errs.String())
	require.NoError(t, json.Unmarshal(line, &said))
	return said, kill
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
	said, kill := host(t, dir, crowd(), time.Hour)
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
