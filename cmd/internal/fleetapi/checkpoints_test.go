package fleetapi

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// keepCheckpoint writes one down.
func keepCheckpoint(t *testing.T, r *Records, key messages.CheckpointKey, text string) {
	t.Helper()
	h := store.Header{Name: key.ID(), Session: messages.SessionKey{Session: "s", Cwd: "/w"}.ID(), Made: time.Now(), Expires: time.Now().Add(time.Hour), Manifest: []byte("{}"), Sections: []int64{int64(len(text))}}
	require.NoError(t, r.Put(t.Context(), h, strings.NewReader(text)))
}

// TestCheckpointsAreOfAllNodes: what one has saved another has, but of a workspace, which stays with
// its node. One that another node reads is waited for.
func TestCheckpointsAreOfAllNodes(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	a, b := NewRecords(folder(t, shared), folder(t, t.TempDir())), NewRecords(folder(t, shared), folder(t, t.TempDir()))
	first, own := messages.CheckpointKey{Name: "first"}, messages.CheckpointKey{Name: "first", Workspace: "w"}
	keepCheckpoint(t, a, first, "everybody's")
	keepCheckpoint(t, a, own, "its own")
	names := func(r *Records) (names []string) {
		list, err := r.List(t.Context())
		require.NoError(t, err)
		for _, h := range list {
			names = append(names, h.Name)
		}
		return names
	}
	require.ElementsMatch(t, []string{first.ID(), own.ID()}, names(a))
	require.Equal(t, []string{first.ID()}, names(b))

	open, err := a.Get(t.Context(), first.ID(), store.Claim{})
	require.NoError(t, err)
	got := make(chan string)
	go func() { // ends with the test's reading from it
		record, err := b.Get(t.Context(), first.ID(), store.Claim{})
		if err != nil {
			got <- err.Error()
			return
		}
		var image bytes.Buffer
		err = errors.Join(record.Image(t.Context(), &image), record.Close())
		if err != nil {
			image.WriteString(err.Error())
		}
		got <- image.String()
	}()
	require.NoError(t, open.Close())
	require.Equal(t, "everybody's", <-got)
	_, err = b.Get(t.Context(), own.ID(), store.Claim{})
	require.ErrorIs(t, err, store.ErrNone)

	require.NoError(t, b.Delete(t.Context(), first.ID()))
	require.Equal(t, []string{own.ID()}, names(a))
}

// TestCheckpointsOfOneName are written one by one, whichever node writes them.
func TestCheckpointsOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		shared := folder(t, t.TempDir())
		a, b := joinKeeping(t, m, w, "a", shared), joinKeeping(t, m, w, "b", shared)
		defer a.leave()
		defer b.leave()
		var writing, most atomic.Int32
		handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if n := writing.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second) // virtual time
			writing.Add(-1)
			rw.WriteHeader(http.StatusNoContent)
		})
		var handlers []http.Handler
		for _, s := range []*server{a, b} {
			for _, mount := range s.node.Wrap([]httpserver.Mount{
				{Pattern: "POST /api/sessions/{session}/save", Handler: handler}, {Pattern: "DELETE /api/saved-checkpoints/{name}", Handler: handler},
			}) {
				mux := http.NewServeMux()
				mux.Handle(mount.Pattern, mount.Handler)
				handlers = append(handlers, mux)
			}
		}
		done := make(chan int)
		for i, h := range handlers {
			go func() { // each sends once
				method, path := http.MethodPost, "/api/sessions/s"+string(rune('0'+i))+"/save"
				if i%2 == 1 {
					method, path = http.MethodDelete, "/api/saved-checkpoints/one"
				}
				done <- serveTo(h, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(`{"name":"one"}`))).Code
			}()
		}
		for range handlers {
			require.Equal(t, http.StatusNoContent, <-done)
		}
		require.EqualValues(t, 2, most.Load(), "those of one node are told apart by its host")
	})
}

// TestCheckpointsOfWhoHasAll: whoever has as many sessions as they may still saves and drops.
func TestCheckpointsOfWhoHasAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a := joinWith(t, m, w, "a", folder(t, t.TempDir()), func(o *Options) { o.Most = 1 })
		defer a.leave()
		require.Equal(t, "1", a.run("e1", "s", 0).Body.String())
		require.Equal(t, "quota", code(a.run("e2", "t", 0)))
		done := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) })
		for _, mount := range a.node.Wrap([]httpserver.Mount{
			{Pattern: "POST /api/sessions/{session}/save", Handler: done}, {Pattern: "DELETE /api/saved-checkpoints/{name}", Handler: done},
		}) {
			method, path, _ := strings.Cut(mount.Pattern, " ")
			path = strings.NewReplacer("{session}", "s", "{name}", "one").Replace(path)
			mux := http.NewServeMux()
			mux.Handle(mount.Pattern, mount.Handler)
			rec := serveTo(mux, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(`{"name":"one"}`)))
			require.Equal(t, http.StatusNoContent, rec.Code, rec.Body)
		}
	})
}

// TestWhatIsAtSomeNode is served by the one that knows it, and told as not there by the one that was
// asked when none does.
func TestWhatIsAtSomeNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		b.mu.Lock()
		b.known["c1"] = "kept"
		b.mu.Unlock()
		require.Equal(t, http.StatusNoContent, a.ask(http.MethodDelete, "/api/checkpoints/c1", "", 0).Code)
		rec := a.ask(http.MethodDelete, "/api/checkpoints/c1", "", 0)
		require.Equal(t, http.StatusNotFound, rec.Code)
		require.Equal(t, a.node.ID(), rec.Header().Get(HeaderNode))
		b.kill()
		require.Equal(t, "owner_away", code(a.ask(http.MethodDelete, "/api/checkpoints/c1", "", 0)))
		defer b.link.Mend()
	})
}
