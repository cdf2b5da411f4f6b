package fleetapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// slow is a store whose next Put waits once the record is written.
type slow struct {
	store.Store
	written, on chan struct{} // nil: it does not wait
}

// Put implements [store.Store].
func (s *slow) Put(ctx context.Context, h store.Header, image io.ReaderAt) error {
	err := s.Store.Put(ctx, h, image)
	if s.written != nil {
		close(s.written)
		<-s.on
		s.written = nil
	}
	return err
}

// folder opens the folder that nodes share, or another one.
func folder(t *testing.T, dir string) store.Store {
	t.Helper()
	f, err := store.OpenFolder(t.Context(), store.FolderOptions{Dir: filepath.Join(dir, "kept"), KeyFile: filepath.Join(dir, "key")})
	require.NoError(t, err)
	return f
}

// sleep keeps a counter on disk, in the way of package hibernate, and ends it.
func (s *server) sleep(ctx context.Context, key messages.SessionKey) error {
	s.mu.Lock()
	image := []byte(strconv.Itoa(s.sessions[key]))
	s.mu.Unlock()
	h := store.Header{Name: key.ID(), Session: key.ID(), Made: time.Now(), Manifest: []byte("{}"), Sections: []int64{int64(len(image))}}
	if err := s.records.Put(ctx, h, bytes.NewReader(image)); err != nil {
		return err
	}
	s.end(key.Session, WhyKept)
	return nil
}

// wake begins a session that has no counter with what is kept of it.
func (s *server) wake(ctx context.Context, key messages.SessionKey) (int, error) {
	record, err := s.records.Get(ctx, key.ID(), store.Claim{})
	if errors.Is(err, store.ErrNone) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = record.Close() }()
	var image bytes.Buffer
	if err := record.Image(ctx, &image); err != nil {
		return 0, err
	}
	if err := s.records.Delete(ctx, key.ID()); err != nil {
		return 0, err
	}
	return strconv.Atoi(image.String())
}

func named(session string) messages.SessionKey {
	return messages.SessionKey{Session: session, Cwd: "/w"}
}

// TestKeptForAnother: what a node keeps when it is drained another one goes on with, once, and
// lists name it until then.
func TestKeptForAnother(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		shared := folder(t, dir)
		a, b := joinKeeping(t, m, w, "a", shared), joinKeeping(t, m, w, "b", shared)
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String())
		require.Equal(t, "2", a.run("e2", "k", 1).Body.String())
		require.NoError(t, a.node.Drain(t.Context()))
		listed := func(n *server) []string {
			list, err := n.records.List(t.Context())
			require.NoError(t, err)
			var names []string
			for _, h := range list {
				names = append(names, h.Name)
			}
			return names
		}
		require.Equal(t, []string{named("k").ID()}, listed(a))
		require.Equal(t, []string{named("k").ID()}, listed(b))
		require.Equal(t, "3", b.run("e3", "k", 1).Body.String(), "it goes on, as the node that had it knows of no e3")
		require.Equal(t, []string{"the session goes on in epoch 2, with what was kept of it on disk"}, b.news)
		require.Empty(t, listed(b))
		require.Equal(t, "4", b.run("e4", "k", 2).Body.String())
		_, err := a.records.Get(t.Context(), named("k").ID(), store.Claim{})
		require.ErrorIs(t, err, errNotOwner)
		a.leave()

		// Once more, to one that comes when the other has gone.
		require.NoError(t, b.sleep(t.Context(), named("k")))
		time.Sleep(time.Second)
		require.Zero(t, b.node.owned())
		c := joinKeeping(t, m, w, "c", shared)
		defer c.leave()
		b.kill()
		defer b.leave()
		time.Sleep(2 * ttl)
		require.Equal(t, "begun", code(c.run("e4", "k", 2)), "it was begun before")
		rec := c.run("e3", "k", 1)
		require.Equal(t, "epoch_gone", code(rec), rec.Body)
		require.Contains(t, rec.Body.String(), "with what was kept of it on disk")
		require.NotContains(t, rec.Body.String(), "is gone")
		require.Equal(t, "5", c.run("e5", "k", 2).Body.String(), "it goes on, though the node that had it is gone")
	})
}

// TestWhatIsOutOfDate: who goes on with a session whose node has died since it was restored is told
// when it was last kept, before anything begins, and with the first result; who has reset it is not.
func TestWhatIsOutOfDate(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		shared := folder(t, dir)
		a, b := joinKeeping(t, m, w, "a", shared), joinKeeping(t, m, w, "b", shared)
		defer a.leave()
		defer b.leave()
		kept := time.Now().UTC().Format(time.RFC3339)
		for _, session := range []string{"k", "l"} {
			require.Equal(t, "1", a.run("1-"+session, session, 0).Body.String())
			require.NoError(t, a.sleep(t.Context(), named(session)))
		}
		time.Sleep(time.Minute)
		for _, session := range []string{"k", "l"} {
			require.Equal(t, "2", a.run("2-"+session, session, 1).Body.String())
		}
		require.NoError(t, a.records.Delete(t.Context(), named("l").ID())) // as a reset does
		list, err := shared.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)
		a.kill()
		time.Sleep(2 * ttl)
		older := "it was last kept on disk at " + kept + " and has gone on since, so what was kept is out of date, and is not restored"
		for _, rec := range []*httptest.ResponseRecorder{b.run("3-k", "k", 0), b.run("3-k", "k", 2)} {
			require.Contains(t, []string{"epoch_needed", "epoch_gone"}, code(rec))
			require.Contains(t, rec.Body.String(), "is lost; "+older)
		}
		require.Equal(t, "1", b.run("3-k", "k", 3).Body.String())
		require.Equal(t, []string{"the session begins anew, in epoch 3: what it had in memory in epoch 2 is gone, with its node or its end; " + older}, b.news)
		require.Equal(t, "epoch_needed", code(b.run("3-l", "l", 0)))
		require.Equal(t, "1", b.run("3-l", "l", 3).Body.String())
		require.NotContains(t, b.news[1], "on disk")
	})
}

// TestDrainWhileItIsAskedFor: a session that is asked for while it is put away, and whose kernel
// takes a while to end, is put away once and given up all the same; one whose kernel ends by
// itself is not ended besides.
func TestDrainWhileItIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		shared := folder(t, dir)
		a, b := joinKeeping(t, m, w, "a", shared), joinKeeping(t, m, w, "b", shared)
		defer b.leave()
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String())
		require.Equal(t, "1", a.run("e2", "l", 0).Body.String())
		var slept []string
		a.node.o.Hibernate = func(ctx context.Context, key messages.SessionKey) error {
			slept = append(slept, key.Session)
			if key.Session == "l" {
				return &messages.HibernateRefused{Reason: messages.HibernateNoKernel, Problem: "its kernel is stopping"}
			}
			err := a.sleep(ctx, key)
			a.mu.Lock()
			a.sessions[key] = 1 // it takes a while to end
			a.mu.Unlock()
			time.AfterFunc(3*time.Second, func() { a.end(key.Session, WhyKept) })
			require.Equal(t, "draining", code(b.run("e3", "k", 1)))
			return err
		}
		require.NoError(t, a.node.Drain(t.Context()))
		require.Equal(t, []string{"k", "l"}, slices.Sorted(slices.Values(slept))[:2])
		require.NotContains(t, slept[2:], "k")
		require.Zero(t, a.ended, "nothing is ended that may be on its way to the disk")
		require.Equal(t, "2", b.run("e3", "k", 1).Body.String(), "it goes on")
		a.leave()
	})
}

// TestKeptTooLate: a node that another one has followed while it wrote a session down keeps
// nothing: neither does the other one's next call find it, nor does it replace what that keeps.
func TestKeptTooLate(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		shared, late := folder(t, dir), &slow{Store: folder(t, dir), written: make(chan struct{}), on: make(chan struct{})}
		a, b := joinKeeping(t, m, w, "a", late), joinKeeping(t, m, w, "b", shared)
		defer a.leave()
		defer b.leave()
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String())
		slept := make(chan error)
		go func() { slept <- a.sleep(t.Context(), named("k")) }()
		<-late.written
		a.link.Cut()
		time.Sleep(2 * ttl)
		require.Equal(t, "epoch_needed", code(b.run("e2", "k", 0)))
		require.Equal(t, "1", b.run("e2", "k", 2).Body.String(), "nobody has said that it is kept")
		require.NoError(t, b.sleep(t.Context(), named("k")))
		a.link.Mend()
		close(late.on)
		require.Error(t, <-slept)
		time.Sleep(time.Second)
		list, err := shared.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 2, "both are there")
		listed, err := b.records.List(t.Context())
		require.NoError(t, err)
		require.Len(t, listed, 1, "one counts")
		list, err = shared.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1, "the other one is dropped")
		require.Equal(t, "2", b.run("e3", "k", 2).Body.String())
	})
}

// TestWhatIsKeptIsDropped with its session, at whichever node that is closed; and by a fork that
// has its name.
func TestWhatIsKeptIsDropped(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		shared := folder(t, dir)
		a, b := joinKeeping(t, m, w, "a", shared), joinKeeping(t, m, w, "b", shared)
		defer a.leave()
		defer b.leave()
		for _, session := range []string{"k", "f~1"} {
			require.Equal(t, "1", a.run("e-"+session, session, 0).Body.String())
			require.NoError(t, a.sleep(t.Context(), named(session)))
		}
		time.Sleep(time.Second)
		require.Equal(t, http.StatusNoContent, b.ask(http.MethodDelete, "/api/sessions/k", "", 0).Code)
		require.Equal(t, "1", b.run("f1", "f", 0).Body.String())
		require.Equal(t, http.StatusCreated, b.ask(http.MethodPost, "/api/sessions/f/fork", "", 0).Code)
		list, err := shared.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)
		time.Sleep(time.Second)
		require.Equal(t, "1", a.run("e2", "k", 2).Body.String())
		require.Contains(t, a.news[len(a.news)-1], messages.SessionClosed)
		require.Equal(t, "8", a.run("e3", "f~1", 2).Body.String(), "the fork's")
	})
}

// TestWhatStaysWithTheNode is kept in a store of its own, and of what it has there no other
// session is listed.
func TestWhatStaysWithTheNode(t *testing.T) {
	t.Parallel()
	shared, own := folder(t, t.TempDir()), folder(t, t.TempDir())
	r := NewRecords(shared, own)
	key := messages.SessionKey{Session: "s", Cwd: "/w", Workspace: "w"}
	put := func(to store.Store, name string) error {
		return to.Put(t.Context(), store.Header{Name: name, Made: time.Now(), Manifest: []byte("{}")}, strings.NewReader(""))
	}
	require.NoError(t, put(r, key.ID()))
	require.NoError(t, put(r, "snapshot/1"))
	require.NoError(t, put(own, named("from before").ID()))
	require.ErrorIs(t, put(r, named("k").ID()), errNotOwner)
	list, err := r.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.NoError(t, r.Delete(t.Context(), named("from before").ID()))
	record, err := r.Get(t.Context(), key.ID(), store.Claim{})
	require.NoError(t, err)
	require.NoError(t, record.Close())
	require.NoError(t, r.Delete(t.Context(), key.ID()))
	_, err = r.Get(t.Context(), key.ID(), store.Claim{})
	require.ErrorIs(t, err, store.ErrNone)
	list, err = shared.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestEachOnce: a session that is kept where all nodes have it stands in a list once, at none.
func TestEachOnce(t *testing.T) {
	t.Parallel()
	all := Entries([]byte(`{"sessions":[{"session":"a","cwd":"/w","state":"hibernated"},{"session":"b","cwd":"/w","state":"hibernated"},
		{"session":"a","cwd":"/w","workspace":"w","state":"hibernated"}]}`), "sessions", "one", true)
	all = append(all, Entries([]byte(`{"sessions":[{"session":"a","cwd":"/w","state":"hibernated"},{"session":"b","cwd":"/w","state":"idle"},
		{"session":"a","cwd":"/w","workspace":"w","state":"hibernated"}]}`), "sessions", "two", true)...)
	var got []string
	for _, text := range once(all) {
		got = append(got, string(text))
	}
	require.Equal(t, []string{
		`{"cwd":"/w","session":"a","state":"hibernated"}`,
		`{"cwd":"/w","node":"one","session":"a","state":"hibernated","workspace":"w"}`,
		`{"cwd":"/w","node":"two","session":"b","state":"idle"}`,
		`{"cwd":"/w","node":"two","session":"a","state":"hibernated","workspace":"w"}`,
	}, got)
}
