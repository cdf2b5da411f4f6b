package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/files"
)

// gateway is a gateway actor without sessions: it notes which workspaces end, and why.
type gateway struct {
	ended chan messages.EndWorkspace
	// hold, when it is not nil, keeps the answer back until it is closed.
	hold chan struct{}
}

func (g *gateway) Init(*supervisor.Ctx) error                 { return nil }
func (g *gateway) Terminate(*supervisor.Ctx, supervisor.Exit) {}
func (g *gateway) Handle(_ *supervisor.Ctx, msg any) error {
	w, ok := msg.(supervisor.Work)
	if !ok {
		return supervisor.Unknown(msg)
	}
	if m, ok := w.Msg.(messages.EndWorkspace); ok {
		g.ended <- m
		if g.hold != nil {
			go func() { // ends with the test
				<-g.hold
				w.Settle(true)
			}()
			return nil
		}
	}
	w.Settle(true)
	return nil
}

type world struct {
	*workspace.Set
	gateway *gateway
	system  *supervisor.System
	dir     string
}

func start(t *testing.T, o workspace.SetOptions) *world {
	t.Helper()
	return startWith(t, nil, o)
}

// startWith has a process own those of the workspaces.
func startWith(t *testing.T, own *process.Owner, o workspace.SetOptions) *world {
	t.Helper()
	return startIn(t, own, workspace.Place{}, o)
}

// startIn has the kernels of the workspaces come from a place.
func startIn(t *testing.T, own *process.Owner, place workspace.Place, o workspace.SetOptions) *world {
	t.Helper()
	place.Rung = "privileges"
	w := &world{gateway: &gateway{ended: make(chan messages.EndWorkspace, 100)}, dir: filepath.Join(t.TempDir(), "workspaces")}
	w.Set = workspace.New(workspace.Host{
		Dir: w.dir, Owner: own, Sessions: func() supervisor.Ref { return w.system.Ref("gateway") },
		Place: func(string, workspace.Options) (workspace.Place, error) {
			return place, nil
		},
	}, o)
	var err error
	w.system, err = supervisor.Start(t.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{
		{Key: "gateway", New: func() supervisor.Behaviour { return w.gateway }}, w.Spec(),
	}})
	require.NoError(t, err)
	return w
}

func (w *world) stop(t *testing.T) {
	t.Helper()
	report := w.system.Shutdown(context.Background())
	require.Empty(t, report.Leftovers)
	require.Empty(t, w.system.Bugs())
}

func (w *world) open(t *testing.T, name string, o workspace.Options) *workspace.Workspace {
	t.Helper()
	one, err := w.Open(t.Context(), name, o)
	require.NoError(t, err)
	return one
}

func reason(t *testing.T, err error) workspace.Reason {
	t.Helper()
	ended, ok := errors.AsType[*workspace.EndedError](err)
	require.True(t, ok, "%v", err)
	return ended.Reason
}

func TestAWorkspaceIsMadeFoundAndEnded(t *testing.T) {
	w := start(t, workspace.SetOptions{})
	defer w.stop(t)
	one := w.open(t, "etl", workspace.Options{Labels: map[string]string{"team": "a"}, Owner: "ann", Env: map[string]string{"A": "1"}, Quota: 100})
	require.Equal(t, filepath.Join(w.dir, "etl"), one.Folder())
	info, err := os.Stat(one.Folder())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	f, err := one.Files()
	require.NoError(t, err)
	require.EqualValues(t, 100, f.Quota())

	// It is found as it was made, or by those who do not say how.
	require.Same(t, one, w.open(t, "etl", workspace.Options{}))
	require.Same(t, one, w.open(t, "etl", workspace.Options{Owner: "ann", Env: map[string]string{"A": "1"}, Quota: 100, IdleEnd: time.Hour}))
	_, err = w.Open(t.Context(), "etl", workspace.Options{Owner: "bob"})
	_, exists := errors.AsType[*workspace.ExistsError](err)
	require.True(t, exists, "%v", err)

	w.open(t, "other", workspace.Options{Labels: map[string]string{"team": "b", "x": ""}})
	for want, filter := range map[string]workspace.Filter{
		"etl": {Labels: map[string]string{"team": "a"}}, "other": {Labels: map[string]string{"x": ""}},
	} {
		list := w.List(filter)
		require.Len(t, list, 1)
		require.Equal(t, want, list[0].Name)
	}
	require.Len(t, w.List(workspace.Filter{Labels: map[string]string{"team": ""}}), 2)
	require.Len(t, w.List(workspace.Filter{Owner: "ann"}), 1)
	require.NoError(t, one.SetLabels(map[string]string{"team": "c"}))
	require.Len(t, w.List(workspace.Filter{Labels: map[string]string{"team": "c"}}), 1)

	require.NoError(t, one.End(t.Context()))
	require.NoError(t, one.End(t.Context()))
	require.Equal(t, "etl", (<-w.gateway.ended).Workspace)
	require.NoDirExists(t, filepath.Join(w.dir, "etl"))
	require.Equal(t, workspace.ReasonAsked, reason(t, one.Err()))
	_, err = one.Enter()
	require.Equal(t, workspace.ReasonAsked, reason(t, err))
	require.Equal(t, workspace.ReasonAsked, reason(t, one.Begin(func() error { panic("it must not begin") })))
	_, err = one.Files()
	require.Equal(t, workspace.ReasonAsked, reason(t, err))
	_, err = w.Get("etl")
	require.Equal(t, workspace.ReasonAsked, reason(t, err))
	_, err = w.Get("never")
	require.ErrorIs(t, err, workspace.ErrUnknown)
	require.NotSame(t, one, w.open(t, "etl", workspace.Options{Owner: "bob"}), "the name is free")
}

func TestWhatCannotBeMade(t *testing.T) {
	w := start(t, workspace.SetOptions{})
	defer w.stop(t)
	for _, c := range []struct {
		name, field string
		o           workspace.Options
	}{
		{"", "name", workspace.Options{}},
		{"..", "name", workspace.Options{}},
		{"a/b", "name", workspace.Options{}},
		{".hidden", "name", workspace.Options{}},
		{"-rf", "name", workspace.Options{}},
		{"end.", "name", workspace.Options{}},
		{"ü", "name", workspace.Options{}},
		{"a", "env", workspace.Options{Env: map[string]string{"A=B": ""}}},
		{"a", "labels", workspace.Options{Labels: map[string]string{"": ""}}},
		{"a", "quota", workspace.Options{Quota: -1}},
		{"a", "idle_end", workspace.Options{IdleEnd: -1}},
		{"a", "folder", workspace.Options{Folder: filepath.Join(t.TempDir(), "none")}},
	} {
		_, err := w.Open(t.Context(), c.name, c.o)
		wrong, ok := errors.AsType[*workspace.OptionsError](err)
		require.True(t, ok, "%+v: %v", c, err)
		require.Equal(t, c.field, wrong.Field)
	}
	w.open(t, "a", workspace.Options{}) // a start that failed is in no one's way
}

func TestAGivenFolderAndAKeptOneStay(t *testing.T) {
	w := start(t, workspace.SetOptions{})
	defer w.stop(t)
	given := t.TempDir()
	for name, o := range map[string]workspace.Options{"given": {Folder: given}, "kept": {KeepFolder: true}} {
		one := w.open(t, name, o)
		f, err := one.Files()
		require.NoError(t, err)
		_, err = f.WriteBytes(t.Context(), "a", []byte("x"), files.WriteOptions{})
		require.NoError(t, err)
		require.NoError(t, one.End(t.Context()))
		require.FileExists(t, filepath.Join(one.Folder(), "a"))
	}
}

func TestTheNameIsFreeWhenNothingIsLeft(t *testing.T) {
	w := start(t, workspace.SetOptions{})
	defer w.stop(t)
	w.gateway.hold = make(chan struct{})
	one := w.open(t, "a", workspace.Options{})
	ended := make(chan error, 1)
	go func() { ended <- one.End(context.Background()) }()
	<-w.gateway.ended
	again := make(chan *workspace.Workspace, 1)
	go func() {
		w2, _ := w.Open(context.Background(), "a", workspace.Options{Owner: "other"})
		again <- w2
	}()
	select {
	case <-one.Done():
		require.Fail(t, "its kernels live")
	default:
	}
	require.DirExists(t, one.Folder())
	close(w.gateway.hold)
	require.NoError(t, <-ended)
	require.Equal(t, "other", (<-again).Owner())
}

// backend is one that has something to remove.
type backend struct {
	kernel.Backend
	closed atomic.Int32
}

func (b *backend) Close() error { b.closed.Add(1); return nil }

// Whoever gives up while the name is still another's leaves nothing behind.
func TestWhatNoOneWaitsForIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		w := startIn(t, nil, workspace.Place{Backend: b}, workspace.SetOptions{})
		defer w.stop(t)
		w.gateway.hold = make(chan struct{})
		one := w.open(t, "a", workspace.Options{})
		ended := make(chan error, 1)
		go func() { ended <- one.End(context.Background()) }()
		<-w.gateway.ended
		ctx, cancel := context.WithCancel(t.Context())
		again := make(chan error, 1)
		go func() {
			_, err := w.Open(ctx, "a", workspace.Options{Owner: "other"})
			again <- err
		}()
		synctest.Wait() // it waits for the name
		cancel()
		require.ErrorIs(t, <-again, context.Canceled)
		require.Zero(t, b.closed.Load(), "nothing was made for the second")
		close(w.gateway.hold)
		require.NoError(t, <-ended)
		require.EqualValues(t, 1, b.closed.Load(), "what was made for the first, once")
		w.open(t, "a", workspace.Options{})
	})
}

// Limits that cannot be kept to leave nothing behind of what was made for the kernels.
func TestWhatHasNoGroupIsRemoved(t *testing.T) {
	b := &backend{}
	w := startIn(t, nil, workspace.Place{Backend: b, Owner: &process.Owner{}, Inside: true}, workspace.SetOptions{})
	defer w.stop(t)
	for n := range int32(2) {
		_, err := w.Open(t.Context(), "a", workspace.Options{Total: workspace.Total{Processes: 1}})
		wrong, ok := errors.AsType[*workspace.OptionsError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "total", wrong.Field)
		require.Equal(t, n+1, b.closed.Load())
	}
	require.NoError(t, w.open(t, "a", workspace.Options{}).End(t.Context()))
	require.EqualValues(t, 3, b.closed.Load())
}

// Whoever asks with a context that has ended does not keep the name from others.
func TestANameIsFreeThatNoOneWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		w := startIn(t, nil, workspace.Place{Backend: b}, workspace.SetOptions{})
		defer w.stop(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		const tries = 20
		made := 1
		for range tries {
			one, err := w.Open(ctx, "a", workspace.Options{})
			if err == nil { // it was made before that was seen
				require.NoError(t, one.End(t.Context()))
			} else if require.ErrorIs(t, err, context.Canceled); strings.Contains(err.Error(), "the end of the earlier one") {
				continue // nothing was made for it
			}
			made++
		}
		one := w.open(t, "a", workspace.Options{Owner: "other"})
		require.NoError(t, one.End(t.Context()))
		synctest.Wait()
		require.EqualValues(t, made, b.closed.Load())
	})
}

func TestLifetimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, workspace.SetOptions{})
		defer w.stop(t)
		idle := w.open(t, "idle", workspace.Options{IdleEnd: time.Minute})
		dated := w.open(t, "dated", workspace.Options{EndAt: time.Now().Add(10 * time.Minute), IdleEnd: time.Hour})
		used := w.open(t, "used", workspace.Options{IdleEnd: time.Minute})
		forever := w.open(t, "forever", workspace.Options{})
		leave, err := used.Enter()
		require.NoError(t, err)

		time.Sleep(59 * time.Second)
		_, err = idle.Files() // begins the idle time again
		require.NoError(t, err)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		require.NoError(t, idle.Err())
		time.Sleep(2 * time.Second)
		<-idle.Done()
		require.Equal(t, workspace.ReasonIdle, reason(t, idle.Err()))
		require.Contains(t, (<-w.gateway.ended).Reason, "not used for 1m0s")

		require.NoError(t, used.Err(), "what is in use is not idle")
		leave()
		leave()
		time.Sleep(30 * time.Second)
		require.NoError(t, used.SetLifetime(time.Time{}, 20*time.Second)) // it would have ended by now
		<-used.Done()
		require.Equal(t, workspace.ReasonIdle, reason(t, used.Err()))

		busy, err := dated.Enter()
		require.NoError(t, err)
		defer busy()
		time.Sleep(10 * time.Minute)
		<-dated.Done()
		require.Equal(t, workspace.ReasonEndTime, reason(t, dated.Err()))

		require.NoError(t, forever.SetLifetime(time.Now().Add(time.Hour), 0))
		require.NoError(t, forever.SetLifetime(time.Time{}, 0))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		require.NoError(t, forever.Err())
	})
}

func TestCapacityCountsWorkspaces(t *testing.T) {
	w := start(t, workspace.SetOptions{Max: 3, MaxPerOwner: 2})
	defer w.stop(t)
	a := w.open(t, "a", workspace.Options{Owner: "ann"})
	b := w.open(t, "b", workspace.Options{Owner: "ann"})
	require.NoError(t, a.Pin(t.Context(), true))
	leave, err := b.Enter()
	require.NoError(t, err)
	_, err = w.Open(t.Context(), "c", workspace.Options{Owner: "ann"})
	require.ErrorIs(t, err, workspace.ErrNoPlace)
	require.EqualError(t, err, "there is no place for another workspace: 2 of 2 places for ann are taken, and none is idle")
	c := w.open(t, "c", workspace.Options{})
	w.open(t, "d", workspace.Options{}) // takes the place of c: a is pinned, b in use
	<-c.Done()
	require.Equal(t, workspace.ReasonEvicted, reason(t, c.Err()))
	require.NoError(t, a.Err())
	require.NoError(t, b.Err())
	leave()

	require.NoError(t, w.ReleaseOwner(t.Context(), "ann"))
	require.Equal(t, workspace.ReasonOwner, reason(t, a.Err()))
	require.Equal(t, workspace.ReasonOwner, reason(t, b.Err()))
	require.Len(t, w.List(workspace.Filter{}), 1)
}

func TestShutdownEndsAll(t *testing.T) {
	w := start(t, workspace.SetOptions{})
	one := w.open(t, "a", workspace.Options{})
	leave, err := one.Enter()
	require.NoError(t, err)
	defer leave()
	w.stop(t)
	<-one.Done()
	require.Equal(t, workspace.ReasonShutdown, reason(t, one.Err()))
	require.NoDirExists(t, one.Folder())
	_, err = w.Open(t.Context(), "b", workspace.Options{})
	require.Equal(t, workspace.ReasonShutdown, reason(t, err))
}

func TestPassing(t *testing.T) {
	env := []string{"PATH=/bin", "LC_ALL=C", "A=1", "B=2", "home=x"}
	require.Equal(t, env, workspace.Options{}.Passing(env))
	require.Equal(t, []string{"PATH=/bin", "LC_ALL=C", "home=x"}, workspace.Options{Pass: []string{}}.Passing(env))
	require.Equal(t, []string{"PATH=/bin", "LC_ALL=C", "B=2", "home=x"}, workspace.Options{Pass: []string{"B"}}.Passing(env))
}
