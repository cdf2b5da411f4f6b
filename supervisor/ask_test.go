package supervisor_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// question is what the tests' actors are asked.
type question int

// one starts a system with one actor at "a".
func one(t *testing.T, a behaviour) (*supervisor.System, supervisor.Ref) {
	t.Helper()
	sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{{Key: "a", New: of(a)}}})
	return sys, sys.Ref("a")
}

func TestAsk(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name   string
		handle func(*supervisor.Ctx, supervisor.Work) error
		want   int
		err    error
	}{
		{"an answer", func(_ *supervisor.Ctx, w supervisor.Work) error { w.Settle(int(w.Msg.(question)) + 1); return nil }, 8, nil},
		{"an error for an answer", func(_ *supervisor.Ctx, w supervisor.Work) error { w.Settle(errTest); return nil }, 0, errTest},
		{"nothing for an answer", func(_ *supervisor.Ctx, w supervisor.Work) error { w.Settle(nil); return nil }, 0, nil},
		{"it fails", func(*supervisor.Ctx, supervisor.Work) error { return errTest }, 0, errTest},
		{"it panics", func(*supervisor.Ctx, supervisor.Work) error { panic(errTest) }, 0, supervisor.ErrGone},
		{"its goroutine ends", func(*supervisor.Ctx, supervisor.Work) error { runtime.Goexit(); return nil }, 0, supervisor.ErrGone},
		{"it ends in order", func(*supervisor.Ctx, supervisor.Work) error { return supervisor.ErrDone }, 0, supervisor.ErrGone},
		{"it forgets the question, and ends later", func(c *supervisor.Ctx, _ supervisor.Work) error { c.After(time.Hour, "end"); return nil }, 0, supervisor.ErrGone},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sys, a := one(t, behaviour{handle: func(c *supervisor.Ctx, m any) error {
					if w, ok := m.(supervisor.Work); ok {
						return row.handle(c, w)
					}
					return supervisor.ErrDone
				}})
				got, err := supervisor.Ask[int](t.Context(), a, question(7))
				if row.err != nil {
					require.ErrorIs(t, err, row.err)
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, row.want, got)
				stop(t, sys)
			})
		})
	}
}

func TestAskNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, a := one(t, behaviour{handle: func(*supervisor.Ctx, any) error { return supervisor.ErrDone }})
		ended := a.Monitor()
		require.True(t, a.Tell(1))
		<-ended
		for _, r := range []supervisor.Ref{a, {}, sys.Ref("nobody"), sys.Ref("a", "nobody")} {
			_, err := supervisor.Ask[int](t.Context(), r, question(1))
			require.ErrorIs(t, err, supervisor.ErrNoProcess)
			require.False(t, r.Tell(1))
			exit := <-r.Monitor()
			require.ErrorIs(t, exit, supervisor.ErrNoProcess)
		}
		require.Empty(t, supervisor.Ref{}.Path())
		require.False(t, supervisor.Ref{}.Valid())
		require.Equal(t, "a", a.String())
		require.True(t, a.Valid())
		require.Equal(t, a, sys.Ref("a"), "Refs are comparable")
		stop(t, sys)
	})
}

// TestAskCtx: the end of ctx ends the wait, and the actor can see it.
func TestAskCtx(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := make(chan supervisor.Work, 1)
		sys, a := one(t, behaviour{handle: func(_ *supervisor.Ctx, m any) error { got <- m.(supervisor.Work); return nil }})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errTest)
		defer cancel()
		_, err := supervisor.Ask[int](ctx, a, question(1))
		require.ErrorIs(t, err, errTest)
		w := <-got
		require.True(t, w.Settled())
		require.False(t, w.Settle(1), "the answer is not waited for any more")

		// Begin leaves that to its caller.
		w, r, err := supervisor.Begin[int](a, question(2))
		require.NoError(t, err)
		_, err = r.Wait(ctx)
		require.ErrorIs(t, err, errTest)
		require.False(t, w.Settled())
		require.True(t, (<-got).Settle(3))
		v, err := r.Wait(ctx)
		require.NoError(t, err, "an answer that is there counts, even if ctx has ended")
		require.Equal(t, 3, v)
		stop(t, sys)
	})
}

// TestAskWhileItEnds: questions that wait in the mailbox of an actor that ends
// fail at once, whether it is suspended, stopped or hangs.
func TestAskWhileItEnds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"fails", "stopped", "hangs"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				d := dynamic(behaviour{handle: func(c *supervisor.Ctx, m any) error {
					switch m {
					case "go on":
						if how == "hangs" {
							<-release
							return nil
						}
						select {
						case <-release:
							return errTest
						case <-c.Context().Done():
							return nil
						}
					}
					if w, ok := m.(supervisor.Work); ok {
						c.Finish(w, 1)
					}
					return nil
				}})
				sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: d})}})
				gate := sys.Ref("gate")
				answer(t, submit(t, gate, "a", 1))
				a := sys.Ref("gate", "a")
				require.True(t, a.Tell("go on"))
				_, r, err := supervisor.Begin[int](a, question(1))
				require.NoError(t, err)
				switch how {
				case "fails":
					close(release)
				default:
					in(t, gate, func(s *supervisor.Supervisor) { s.End("a", supervisor.Exit{}) })
				}
				_, err = r.Wait(t.Context())
				require.ErrorIs(t, err, supervisor.ErrGone)
				_, ok := r.Value()
				require.False(t, ok)
				if how == "hangs" {
					close(release)
					synctest.Wait() // it is not left over any more
				}
				stop(t, sys)
			})
		})
	}
}

// TestSettleOnce: of many that settle a work at once one does.
func TestSettleOnce(t *testing.T) {
	t.Parallel()
	for range 50 {
		w, r := supervisor.NewWork[int](nil)
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if w.Settle(i) {
					won.Add(1)
				}
			})
		}
		<-r.Done()
		wg.Wait()
		require.EqualValues(t, 1, won.Load())
		v, ok := r.Value()
		require.True(t, ok)
		again, err := r.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, v, again)
	}
}

func TestWork(t *testing.T) {
	t.Parallel()
	require.False(t, supervisor.Work{}.Settle(1), "the zero Work is not waited for")
	require.False(t, supervisor.Work{}.Settled())
	w, r := supervisor.NewWork[int]("msg")
	require.Equal(t, "msg", w.Msg)
	require.Zero(t, w.Seq())
	require.Empty(t, w.Key())
	_, ok := r.Value()
	require.False(t, ok)
	w.Settle("text")
	_, err := r.Wait(t.Context())
	require.ErrorContains(t, err, "answer of type string where int was expected")
}

// TestSubmitZero: a Work that is not waited for is done all the same.
func TestSubmitZero(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		did := make(chan any, 1)
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{
			Handler: dynamic(behaviour{handle: func(c *supervisor.Ctx, m any) error {
				w := m.(supervisor.Work)
				did <- w.Msg
				c.Finish(w, nil)
				return nil
			}}),
		})}})
		in(t, sys.Ref("gate"), func(s *supervisor.Supervisor) { s.Submit("a", supervisor.Work{Msg: "x"}) })
		require.Equal(t, "x", <-did)
		stop(t, sys)
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	require.EqualError(t, supervisor.Unknown(3), "unknown message int")
	var unknown *supervisor.UnknownMessageError
	require.ErrorAs(t, supervisor.Unknown(question(0)), &unknown)
	require.Equal(t, "supervisor_test.question", unknown.Msg)

	e := error(&supervisor.ServiceError{Key: "k", Kind: supervisor.ErrDraining})
	require.EqualError(t, e, "k: draining")
	require.ErrorIs(t, e, supervisor.ErrDraining)
	require.NotErrorIs(t, e, supervisor.ErrLost)
	e = &supervisor.ServiceError{Key: "k", Kind: supervisor.ErrLost, Exit: supervisor.Exit{Kind: messages.ExitFailed, Err: errTest}}
	require.ErrorIs(t, e, errTest)
	var exit supervisor.Exit
	require.ErrorAs(t, e, &exit)
	require.Equal(t, messages.ExitFailed, exit.Kind)
}
