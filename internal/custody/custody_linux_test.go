package custody_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/process"
)

// crowd is how many sessions a host has.
func crowd() int {
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		return 200
	}
	return 20
}

// take takes over the custody of a host that was killed.
func take(t *testing.T, dir, id string) *custody.Custody {
	t.Helper()
	c, err := custody.Take(within(t), custody.Options{Dir: dir}, id)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.End(t.Context()) })
	return c
}

// TestTheNextHostGoesOn: what the sessions of a killed host remember and print is all
// there for the next one, without a line missing or twice.
func TestTheNextHostGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	said, kill := host(t, dir, crowd(), long)
	kill()
	c := take(t, dir, said.Custody)
	require.Len(t, c.Names(), crowd())
	for i, n := range c.Names() {
		require.Equal(t, name(i), n)
		kept, err := c.Hand(within(t), n)
		require.NoError(t, err)
		require.Len(t, kept.Files, 1)
		var id process.Identity
		require.NoError(t, json.Unmarshal(kept.Note, &id))
		require.True(t, process.Alive(id))
		out := bufio.NewReader(kept.Files[0])
		for k := before; printing(i) && k <= lines; k++ {
			line, err := out.ReadString('\n')
			require.NoError(t, err)
			if k == lines {
				require.Equal(t, "done\n", line)
			} else {
				require.True(t, strings.HasPrefix(line, fmt.Sprintf("line %d ", k)), "%q where line %d is due", line, k)
			}
		}
		_, err = kept.Files[0].WriteString("recall\n")
		require.NoError(t, err)
		line, err := out.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i)+"\n", line)
		require.NoError(t, kept.Files[0].Close())
	}
	for _, id := range said.Processes {
		require.True(t, process.Alive(id))
	}
	require.NoError(t, c.End(within(t)))
	require.NoError(t, c.Err())
	gone(t, append(said.Processes, said.Custodian)...)
	empty(t, dir)
}

// empty makes sure that nothing is left in the folder of custodies.
func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestNobodyComes: everything ends, and nothing is left.
func TestNobodyComes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	said, kill := host(t, dir, 4, 300*time.Millisecond)
	kill()
	gone(t, append(said.Processes, said.Custodian)...)
	empty(t, dir)
	_, err := custody.Take(within(t), custody.Options{Dir: dir}, said.Custody)
	require.ErrorIs(t, err, custody.ErrGone)
}

// TestManyHosts: each is killed, and the last one finds what the first has begun.
func TestManyHosts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	said, kill := host(t, dir, 2, long)
	kill()
	for range 5 {
		c, err := custody.Take(within(t), custody.Options{Dir: dir}, said.Custody)
		require.NoError(t, err)
		require.Equal(t, []string{name(0), name(1)}, c.Names())
		require.NoError(t, c.Leave(within(t)))
		require.NoError(t, c.Err())
		<-c.Done()
	}
	require.NoError(t, take(t, dir, said.Custody).End(within(t)))
}

// TestTheCustodianIsKilled: without a host, what it kept is lost, and said to be by name.
func TestTheCustodianIsKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	said, kill := host(t, dir, 3, long)
	kill()
	require.NoError(t, syscall.Kill(said.Custodian.PID, syscall.SIGKILL))
	gone(t, append(said.Processes, said.Custodian)...)
	found, err := custody.Scan(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []custody.Standing{{ID: said.Custody, State: custody.Gone, Names: []string{name(0), name(1), name(2)}}}, found)
	_, err = custody.Take(within(t), custody.Options{Dir: dir}, said.Custody)
	require.ErrorIs(t, err, custody.ErrGone)
	require.NoError(t, custody.Bury(dir, said.Custody))
	empty(t, dir)
}

// TestTheCustodianIsKilledUnderItsHost: the host learns it, and has what it had.
func TestTheCustodianIsKilledUnderItsHost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	c, err := custody.Begin(within(t), custody.Options{Dir: dir, Python: python()})
	require.NoError(t, err)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, c.Put(within(t), custody.Item{Name: "pipe", Files: []*os.File{read}}))
	require.NoError(t, syscall.Kill(c.Custodian().PID, syscall.SIGKILL))
	<-c.Done()
	require.ErrorIs(t, c.Err(), custody.ErrGone)
	require.ErrorIs(t, c.Put(within(t), custody.Item{Name: "other"}), custody.ErrGone)
	_, err = write.WriteString("x")
	require.NoError(t, err)
	require.NoError(t, read.Close())
	require.NoError(t, write.Close())
	require.NoError(t, c.End(within(t)))
	empty(t, dir)
}

// TestWhatIsKept: things are replaced, noted, let go of and handed out, and a custodian
// that has nothing but what is common ends with its host.
func TestWhatIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	c, err := custody.Begin(within(t), custody.Options{Dir: dir, Python: python(), KeepFor: long})
	require.NoError(t, err)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, c.Put(within(t), custody.Item{Name: "a", Note: json.RawMessage(`1`), Files: []*os.File{write, read}}))
	require.NoError(t, c.Put(within(t), custody.Item{Name: "a", Note: json.RawMessage(`2`), Files: []*os.File{write}}))
	require.NoError(t, c.Put(within(t), custody.Item{Name: "b"}))
	require.NoError(t, c.Put(within(t), custody.Item{Name: "all", Common: true}))
	require.NoError(t, write.Close())
	kept, err := c.Hand(within(t), "a")
	require.NoError(t, err)
	require.JSONEq(t, `2`, string(kept.Note))
	require.Len(t, kept.Files, 1)
	_, err = kept.Files[0].WriteString("x")
	require.NoError(t, err)
	require.NoError(t, kept.Files[0].Close())
	require.NoError(t, c.Note(within(t), "a", json.RawMessage(`{"n":3}`)))
	var refused *custody.RefusedError
	require.ErrorAs(t, c.Note(within(t), "c", nil), &refused)
	_, err = c.Hand(within(t), "c")
	require.ErrorAs(t, err, &refused)
	found, err := custody.Scan(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []custody.Standing{{ID: c.ID(), State: custody.Used, Names: []string{"a", "b"}}}, found)
	require.NoError(t, c.Leave(within(t)))

	c = take(t, dir, c.ID())
	require.Equal(t, []string{"a", "b"}, c.Names())
	kept, err = c.Hand(within(t), "a")
	require.NoError(t, err)
	require.JSONEq(t, `{"n":3}`, string(kept.Note))
	require.NoError(t, kept.Files[0].Close())
	require.NoError(t, c.Drop(within(t), "a"))
	one := make([]byte, 1)
	_, err = read.Read(one)
	require.NoError(t, err)
	_, err = read.Read(one)
	require.Error(t, err) // no one has the other end any more
	require.NoError(t, read.Close())
	require.NoError(t, c.Drop(within(t), "b"))
	custodian := c.Custodian()
	require.NoError(t, c.Leave(within(t)))
	gone(t, custodian)
	empty(t, dir)
}

// TestBounds: what is too much is not sent.
func TestBounds(t *testing.T) {
	c, err := custody.Begin(within(t), custody.Options{Dir: filepath.Join(t.TempDir(), "kept"), Python: python()})
	require.NoError(t, err)
	require.ErrorContains(t, c.Put(within(t), custody.Item{Name: "files", Files: make([]*os.File, custody.MostFiles+1)}), "descriptors")
	require.ErrorContains(t, c.Note(within(t), "note", make([]byte, custody.MostNote+1)), "bytes")
	for _, of := range []string{"x", "<"} {
		require.NoError(t, c.Put(within(t), custody.Item{Name: "note", Note: json.RawMessage(`"` + strings.Repeat(of, custody.MostNote-2) + `"`)}), of)
	}
	require.NoError(t, c.End(within(t)))
}

// TestNoCustodian: a start that fails leaves nothing.
func TestNoCustodian(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	for _, interpreter := range []string{"/bin/false", "/nowhere/python"} {
		_, err := custody.Begin(within(t), custody.Options{Dir: dir, Python: interpreter})
		require.ErrorContains(t, err, "start the process that keeps sessions")
		empty(t, dir)
	}
}
