package hibernate_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an interpreter that has a text in memory, as its own backend.
type fake struct {
	kernel.Interpreter
	text string
	// unreadable are names that another interpreter cannot read, lost those that cannot
	// be written.
	unreadable, lost []string
	thawErr          error
	open             *atomic.Int64 // interpreters and copies that are not closed
	during           func()        // runs while it is written
	starts, writes   *atomic.Int64 // interpreters that were started, and images that were written

	around map[string]any             // what its image says of its folder
	thawed map[string]json.RawMessage // what the image said that it took over
	python string                     // its version; "": 3.12.1
	thaws  *atomic.Int64              // images that were read
}

func (f *fake) Name() string      { return "fake" }
func (f *fake) Info() kernel.Info { return kernel.Info{Python: cmp.Or(f.python, "3.12.1")} }
func (f *fake) Close(context.Context) error {
	f.open.Add(-1)
	return nil
}

func (f *fake) Start(context.Context, kernel.StartOptions) (kernel.Interpreter, error) {
	f.open.Add(1)
	f.starts.Add(1)
	return &fake{open: f.open, thaws: f.thaws, unreadable: f.unreadable, thawErr: f.thawErr, python: f.python}, nil
}

func (f *fake) Freeze(context.Context) (kernel.Frozen, error) {
	f.open.Add(1)
	return &fakeCopy{f}, nil
}

// described is the image of a fake.
type described struct {
	messages.Memory
	Sections []int64  `json:"sections"`
	Apart    bool     `json:"apart"`
	Without  []string `json:"without"`

	Around map[string]any `json:"around"`
}

func (f *fake) Thaw(_ context.Context, from *os.File, image messages.RawJSON) (kernel.Thawed, error) {
	f.thaws.Add(1)
	var d described
	if err := json.Unmarshal(image, &d); err != nil {
		return kernel.Thawed{}, err
	}
	if err := json.Unmarshal(image, &f.thawed); err != nil {
		return kernel.Thawed{}, err
	}
	if f.thawErr != nil {
		return kernel.Thawed{}, f.thawErr
	}
	var t kernel.Thawed
	for _, name := range f.unreadable {
		out := false
		for _, w := range d.Without {
			out = out || w == name
		}
		switch {
		case out:
		case d.Apart:
			t.Failed = append(t.Failed, messages.LostName{Name: name, Type: "T", Reason: "it cannot be read"})
		default:
			return t, &messages.HibernateRefused{Reason: messages.HibernateFailed, Problem: "it cannot be read"}
		}
	}
	data, err := io.ReadAll(io.NewSectionReader(from, 0, d.Sections[0]))
	f.text = string(data)
	return t, err
}

type fakeCopy struct{ f *fake }

func (c *fakeCopy) Write(_ context.Context, to *os.File, how kernel.Writing) (messages.RawJSON, error) {
	if c.f.during != nil {
		c.f.during()
	}
	d := described{Sections: []int64{int64(len(c.f.text))}, Apart: how.Apart, Without: how.Without, Around: c.f.around}
	d.Kept = []string{"text"}
	for _, name := range c.f.lost {
		d.Lost = append(d.Lost, messages.LostName{Name: name, Type: "socket", Reason: "it is lost"})
	}
	if how.Whole && len(d.Lost) > 0 {
		d.Sections = nil
		return json.Marshal(d)
	}
	c.f.writes.Add(1)
	if _, err := to.WriteAt([]byte(c.f.text), 0); err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

func (c *fakeCopy) Close(context.Context) error { c.f.open.Add(-1); return nil }

// keeper makes a Keeper on a folder below dir.
func keeper(t require.TestingT, dir string, p hibernate.Policy) (*hibernate.Keeper, store.Store) {
	s, err := store.OpenFolder(context.Background(), store.FolderOptions{Dir: filepath.Join(dir, "kept"), KeyFile: filepath.Join(dir, "key")})
	require.NoError(t, err)
	k, err := hibernate.New(hibernate.Options{Store: s, Policy: p, Scratch: filepath.Join(dir, "scratch")})
	require.NoError(t, err)
	return k, s
}

func key(name string) messages.SessionKey {
	return messages.SessionKey{Session: name, Cwd: "/srv"}
}

func sleeper(f *fake, name string, owners ...string) kernel.Sleeper {
	return kernel.Sleeper{Key: key(name), Owners: owners, Interpreter: f, Backend: f}
}

func newFake(text string) *fake {
	return &fake{text: text, open: new(atomic.Int64), starts: new(atomic.Int64), writes: new(atomic.Int64), thaws: new(atomic.Int64)}
}

func TestSleepAndWake(t *testing.T) {
	t.Parallel()
	k, s := keeper(t, t.TempDir(), hibernate.Lossy)
	defer k.Close()
	a := newFake("what a knows")
	a.lost = []string{"sock"}
	report, err := k.Sleep(t.Context(), sleeper(a, "a", "me"))
	require.NoError(t, err)
	require.Equal(t, messages.Memory{Kept: []string{"text"}, Lost: []messages.LostName{{Name: "sock", Type: "socket", Reason: "it is lost"}}}, report.Memory)
	require.Zero(t, a.open.Load(), "the copy and the second interpreter are closed")

	b := newFake("")
	_, err = k.Wake(t.Context(), key("a"), "you", b)
	require.ErrorContains(t, err, "belongs to another owner")
	none, err := k.Wake(t.Context(), key("b"), "me", b)
	require.NoError(t, err)
	require.Zero(t, none)

	b.thawErr = errors.New("no")
	_, err = k.Wake(t.Context(), key("a"), "me", b)
	require.ErrorIs(t, err, b.thawErr)
	b.thawErr = nil
	woken, err := k.Wake(t.Context(), key("a"), "me", b)
	require.NoError(t, err, "a restore that fails leaves what is kept")
	require.Equal(t, []string{"me"}, woken.Owners)
	restored := woken.Restored
	require.Equal(t, "what a knows", b.text)
	require.Equal(t, report.Memory, restored.Memory)
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	none, err = k.Wake(t.Context(), key("a"), "me", newFake(""))
	require.NoError(t, err)
	require.Zero(t, none, "it is restored once")

	// What was never told of the first time is in the next record.
	b.lost = []string{"other"}
	next := sleeper(b, "a")
	next.Earlier = restored
	report, err = k.Sleep(t.Context(), next)
	require.NoError(t, err)
	require.Len(t, report.Lost, 2)
}

// TestUnreadable: what a second interpreter cannot read is lost, and the rest is kept.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	k, _ := keeper(t, t.TempDir(), hibernate.Lossy)
	defer k.Close()
	a := newFake("text")
	a.unreadable = []string{"bad", "worse"}
	report, err := k.Sleep(t.Context(), sleeper(a, "a"))
	require.NoError(t, err)
	require.Equal(t, []messages.LostName{{Name: "bad", Type: "T", Reason: "it cannot be read"}, {Name: "worse", Type: "T", Reason: "it cannot be read"}}, report.Lost)
	require.Zero(t, a.open.Load())
	a.thawErr = errors.New("the disk is gone")
	_, err = k.Sleep(t.Context(), sleeper(a, "b"))
	var refused *messages.HibernateRefused
	require.ErrorAs(t, err, &refused)
	require.Equal(t, messages.HibernateFailed, refused.Reason)
	require.Zero(t, a.open.Load())
	list, err := k.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, key("a"), list[0].Key)
}

func TestLossless(t *testing.T) {
	t.Parallel()
	k, _ := keeper(t, t.TempDir(), hibernate.Lossless)
	defer k.Close()
	a := newFake("text")
	_, err := k.Sleep(t.Context(), sleeper(a, "a"))
	require.NoError(t, err)
	a.lost = []string{"sock"}
	_, err = k.Sleep(t.Context(), sleeper(a, "b"))
	var refused *messages.HibernateRefused
	require.ErrorAs(t, err, &refused)
	require.Equal(t, messages.HibernateLossy, refused.Reason)
	require.ErrorContains(t, err, "it would lose sock (socket: it is lost)")
	require.EqualValues(t, 1, a.writes.Load(), "nothing was written of the second")
	require.EqualValues(t, 1, a.starts.Load(), "nor read")

	// What is lost since earlier is known before the session is copied, and what cannot be
	// read again ends it then.
	b := newFake("text")
	again := sleeper(b, "b")
	again.Earlier = &messages.Restored{Memory: messages.Memory{Lost: []messages.LostName{{Name: "old", Type: "T", Reason: "it was lost"}}}}
	b.during = func() { t.Error("it is written") }
	_, err = k.Sleep(t.Context(), again)
	require.ErrorContains(t, err, "it would lose old (T: it was lost)")
	c := newFake("text")
	c.unreadable = []string{"around bad"}
	_, err = k.Sleep(t.Context(), sleeper(c, "c"))
	require.ErrorContains(t, err, "it would lose bad (T: it cannot be read)")
	require.EqualValues(t, 2, c.writes.Load(), "the whole, and each by itself")
	_, err = hibernate.New(hibernate.Options{Policy: hibernate.Never})
	require.Error(t, err)
}

// TestForgottenWhileItIsWritten: a session that is reset while it is written is not kept.
func TestForgottenWhileItIsWritten(t *testing.T) {
	t.Parallel()
	k, s := keeper(t, t.TempDir(), hibernate.Lossy)
	a := newFake("text")
	a.during = func() { k.Forget(key("a")) }
	_, err := k.Sleep(t.Context(), sleeper(a, "a"))
	require.ErrorContains(t, err, "was reset or closed meanwhile")
	k.Close()
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestOwnersAndWorkspaces that end drop what is theirs alone.
func TestOwnersAndWorkspaces(t *testing.T) {
	t.Parallel()
	k, s := keeper(t, t.TempDir(), hibernate.Lossy)
	in := sleeper(newFake("w"), "w")
	in.Key.Workspace = "team"
	for _, one := range []kernel.Sleeper{sleeper(newFake("a"), "a", "me"), sleeper(newFake("b"), "b", "me", "you"), sleeper(newFake("c"), "c"), in} {
		_, err := k.Sleep(t.Context(), one)
		require.NoError(t, err)
	}
	require.NoError(t, k.Release(t.Context(), "me"))
	k.ForgetWorkspace("team")
	k.Close()
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, key("b").ID(), list[0].Name)
	require.Equal(t, key("c").ID(), list[1].Name)
}

// TestAnOwnerWhoHasLeft may not have what is kept of a session that others use, too, and
// the last one who leaves drops it.
func TestAnOwnerWhoHasLeft(t *testing.T) {
	t.Parallel()
	k, s := keeper(t, t.TempDir(), hibernate.Lossy)
	defer k.Close()
	ctx := t.Context()
	for name, owners := range map[string][]string{"two": {"me", "you"}, "everyone's": {"", "me", "you"}} {
		_, err := k.Sleep(ctx, sleeper(newFake("what it knows"), name, owners...))
		require.NoError(t, err)
	}
	require.NoError(t, k.Release(ctx, "me"))
	require.NoError(t, k.Release(ctx, ""))
	_, err := k.Wake(ctx, key("two"), "me", newFake(""))
	require.ErrorContains(t, err, "belongs to another owner")
	list, err := k.List(ctx)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.True(t, list[0].Open, "everyone's")
	require.False(t, list[1].Open)
	require.Equal(t, []string{"you"}, list[1].Owners)
	into := newFake("")
	woken, err := k.Wake(ctx, key("everyone's"), "a stranger", into)
	require.NoError(t, err)
	require.Equal(t, "what it knows", into.text)
	require.Equal(t, []string{"", "you"}, woken.Owners)
	require.NoError(t, k.Release(ctx, "you"))
	all, err := s.List(ctx)
	require.NoError(t, err)
	require.Empty(t, all)
}

// TestRestoredOnce: of many that wake a session at once, one gets it.
func TestRestoredOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, _ := keeper(t, dir, hibernate.Lossy)
	two, _ := keeper(t, dir, hibernate.Lossy)
	defer one.Close()
	defer two.Close()
	for round := range 10 {
		_, err := one.Sleep(t.Context(), sleeper(newFake(fmt.Sprint(round)), "a"))
		require.NoError(t, err)
		var got atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			k := []*hibernate.Keeper{one, two}[i%2]
			wg.Go(func() {
				woken, err := k.Wake(context.Background(), key("a"), "", newFake(""))
				if err != nil && !errors.Is(err, store.ErrBusy) {
					t.Error(err)
				}
				if woken.Restored != nil {
					got.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, got.Load())
	}
}

// TestModel: whatever the order of calls, a session wakes with what it last slept with, or
// with nothing when it was forgotten or woke since.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "model-")
		require.NoError(rt, err)
		k, _ := keeper(rt, dir, hibernate.Lossy)
		defer k.Close()
		names := rapid.SampledFrom([]string{"a", "b"})
		model, n := map[string]string{}, 0
		rt.Repeat(map[string]func(*rapid.T){
			"sleep": func(rt *rapid.T) {
				name := names.Draw(rt, "name")
				n++
				_, err := k.Sleep(context.Background(), sleeper(newFake(fmt.Sprint(n)), name))
				require.NoError(rt, err)
				model[name] = fmt.Sprint(n)
			},
			"sleep fails": func(rt *rapid.T) {
				f := newFake("never")
				f.thawErr = errors.New("no")
				_, err := k.Sleep(context.Background(), sleeper(f, names.Draw(rt, "name")))
				require.Error(rt, err)
			},
			"wake": func(rt *rapid.T) {
				name, f := names.Draw(rt, "name"), newFake("")
				woken, err := k.Wake(context.Background(), key(name), "", f)
				require.NoError(rt, err)
				require.Equal(rt, model[name], f.text)
				require.Equal(rt, model[name] != "", woken.Restored != nil)
				delete(model, name)
			},
			"wake fails": func(rt *rapid.T) {
				name, f := names.Draw(rt, "name"), newFake("")
				f.thawErr = errors.New("no")
				_, err := k.Wake(context.Background(), key(name), "", f)
				require.Equal(rt, model[name] != "", err != nil)
			},
			"forget": func(rt *rapid.T) {
				name := names.Draw(rt, "name")
				k.Forget(key(name))
				delete(model, name)
			},
		})
	})
}
