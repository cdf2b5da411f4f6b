package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

var errTest = errors.New("on purpose")

// writeNilMap is the panic that programs really have.
func writeNilMap() {
	var m map[string]int
	m["a"] = 1 //nolint:govet,staticcheck // on purpose
}

// TestGuardChild has every function of a child fail in every way. Each time the
// reason is typed, Terminate is called exactly when Init was entered, work gets
// its answer, and the next work gets a child that is well.
func TestGuardChild(t *testing.T) {
	t.Parallel()
	ways := []struct {
		name string
		do   func() error
		kind messages.ExitKind
	}{
		{"panic", func() error { panic("on purpose") }, messages.ExitPanicked},
		{"panic with an error", func() error { panic(errTest) }, messages.ExitPanicked},
		{"panic with nil", func() error { panic(nil) }, messages.ExitPanicked}, //nolint:govet // what the runtime makes of it is the point
		{"nil map", func() error { writeNilMap(); return nil }, messages.ExitPanicked},
		{"goexit", func() error { runtime.Goexit(); return nil }, messages.ExitKilled},
		{"error", func() error { return errTest }, messages.ExitFailed},
		{"error of another kind", func() error { return supervisor.Exit{Kind: messages.ExitHung, Err: errTest} }, messages.ExitHung},
		{"error with a message of its own", func() error { return supervisor.Exit{Kind: messages.ExitHung, Err: errTest, Msg: "mine"} }, messages.ExitHung},
		{"error that wraps an exit", func() error { return fmt.Errorf("asked: %w", supervisor.Exit{Kind: messages.ExitShutdown}) }, messages.ExitFailed},
		{"done", func() error { return supervisor.ErrDone }, messages.ExitNormal},
	}
	places := []string{"New", "Init", "Handle", "Terminate"}
	for _, place := range places {
		for _, way := range ways {
			if (place == "New" || place == "Terminate") && way.kind != messages.ExitPanicked && way.kind != messages.ExitKilled {
				continue // these return no error
			}
			t.Run(place+"/"+way.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var ill, inits, terminates int // touched by one incarnation after the other
					ill = 1
					fail := func(here string) error {
						if here == place && ill > 0 {
							ill--
							return way.do()
						}
						return nil
					}
					d := &handler{spec: func(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error) {
						return supervisor.Spec{New: func() supervisor.Behaviour {
							_ = fail("New")
							return &behaviour{
								init: func(*supervisor.Ctx) error { inits++; return fail("Init") },
								handle: func(c *supervisor.Ctx, m any) error {
									if err := fail("Handle"); err != nil {
										return err
									}
									return echo.handle(c, m)
								},
								terminate: func(*supervisor.Ctx, supervisor.Exit) { terminates++; _ = fail("Terminate") },
							}
						}}, nil
					}}
					var kinds []messages.ExitKind
					d.changed = func(_ *supervisor.Supervisor, e messages.ChildChanged) {
						if e.To == messages.ChildGone {
							kinds = append(kinds, e.Exit.Kind)
						}
					}
					sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: d})}})
					gate := sys.Ref("gate")
					first := submit(t, gate, "k", 1)
					synctest.Wait()
					switch place {
					case "New", "Init":
						e := refusal(t, first)
						require.ErrorIs(t, e, supervisor.ErrStartFailed)
						require.False(t, e.Dispatched)
						require.Equal(t, way.kind, e.Exit.Kind)
						if way.name != "error with a message of its own" {
							require.Empty(t, e.Exit.Msg, "it was in none")
						}
					case "Handle":
						e := refusal(t, first)
						require.ErrorIs(t, e, supervisor.ErrLost)
						require.True(t, e.Dispatched)
						require.Equal(t, way.kind, e.Exit.Kind)
						switch {
						case way.name == "error with a message of its own":
							require.Equal(t, "mine", e.Exit.Msg)
						case way.kind != messages.ExitNormal:
							require.Equal(t, "int", e.Exit.Msg, "the type of what it was in")
						}
					case "Terminate":
						require.Equal(t, 1, answer(t, first))
						in(t, gate, func(s *supervisor.Supervisor) { s.End("k", supervisor.Exit{}) })
						synctest.Wait()
					}
					require.Equal(t, []messages.ExitKind{way.kind}, kinds)
					require.Equal(t, inits, terminates, "every Init that was entered has its Terminate")
					require.Equal(t, 2, answer(t, submit(t, gate, "k", 2)), "the next child is well")
					stop(t, sys)
					require.Equal(t, inits, terminates)
				})
			})
		}
	}
}

// TestGuardNew has a Spec that makes nothing.
func TestGuardNew(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]supervisor.Spec{
		"no New":          {},
		"New returns nil": {New: func() supervisor.Behaviour { return nil }},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &handler{spec: func(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error) { return spec, nil }}
			sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: d})}})
			e := refusal(t, submit(t, sys.Ref("gate"), "k", 1))
			require.ErrorIs(t, e, supervisor.ErrStartFailed, name)
			require.Equal(t, messages.ExitFailed, e.Exit.Kind)
			stop(t, sys)
		})
	}
}

// badStrategy fails when it is asked about one kind of event.
type badStrategy struct {
	on func(strategy.Event) bool
	do func()
}

func (b badStrategy) Decide(_ strategy.View, e strategy.Event) []strategy.Directive {
	if b.on(e) {
		b.do()
	}
	return nil
}

// TestGuardSupervisor has the application's parts of a supervisor fail. The
// supervisor fails with a typed reason, its children are ended and not
// orphaned, what was submitted gets an answer, and a restart makes it well.
func TestGuardSupervisor(t *testing.T) {
	t.Parallel()
	ways := map[string]struct {
		do   func() error
		kind messages.ExitKind
	}{
		"panic":  {func() error { panic("on purpose") }, messages.ExitPanicked},
		"goexit": {func() error { runtime.Goexit(); return nil }, messages.ExitKilled},
		"error":  {func() error { return errTest }, messages.ExitFailed},
	}
	places := []string{"Handle", "Spec", "Unserved", "Changed", "Strategy", "Close"}
	for _, place := range places {
		for way, w := range ways {
			if way == "error" && place != "Handle" {
				continue
			}
			t.Run(place+"/"+way, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ill := true // one incarnation of the supervisor after the other
					fail := func(here string) error {
						if here == place && ill {
							ill = false
							return w.do()
						}
						return nil
					}
					var inits, terminates atomic.Int32
					var held supervisor.Work
					child := behaviour{
						init: func(*supervisor.Ctx) error { inits.Add(1); return nil },
						handle: func(c *supervisor.Ctx, m any) error {
							if w, ok := m.(supervisor.Work); ok && w.Msg == "hold" {
								held = w
								return nil
							}
							return echo.handle(c, m)
						},
						terminate: func(*supervisor.Ctx, supervisor.Exit) { terminates.Add(1) },
					}
					newGate := func() supervisor.Behaviour {
						d := dynamic(child)
						d.handle = func(*supervisor.Supervisor, any) error { return fail("Handle") }
						d.changed = func(*supervisor.Supervisor, messages.ChildChanged) { _ = fail("Changed") }
						d.unserved = func(s *supervisor.Supervisor, w supervisor.Work, e *supervisor.ServiceError) {
							_ = fail("Unserved")
							w.Settle(e)
						}
						spec := d.spec
						d.spec = func(s *supervisor.Supervisor, k string, w supervisor.Work) (supervisor.Spec, error) {
							if k == "trigger" {
								_ = fail("Spec")
							}
							return spec(s, k, w)
						}
						d.close = func(*supervisor.Supervisor, supervisor.Exit) { _ = fail("Close") }
						return supervisor.New(supervisor.Options{Handler: d, MaxQueue: 1, Strategy: badStrategy{
							on: func(e strategy.Event) bool { s, ok := e.(strategy.Spawning); return ok && s.Key == "trigger" },
							do: func() { _ = fail("Strategy") },
						}})
					}
					sys := startOnly(t, supervisor.SystemOptions{
						Children: []supervisor.Spec{{Key: "gate", New: newGate, Restart: strategy.Permanent}},
						Strategy: strategy.OneForOne(),
					})
					gate := sys.Ref("gate")
					quiet := ill
					ill = false
					hold := submit(t, gate, "a", "hold")
					synctest.Wait() // it is dispatched, and leaves room in the queue
					waiting := submit(t, gate, "a", "waits")
					synctest.Wait()
					require.Equal(t, "hold", held.Msg)
					ill = quiet
					ended := gate.Monitor()

					var trigger supervisor.Reply[any]
					switch place {
					case "Handle":
						require.True(t, gate.Tell("trigger"))
					case "Close":
						require.True(t, gate.Tell(do(func(*supervisor.Supervisor) error { return errTest })))
					case "Unserved": // one that is too much
						w, r := supervisor.NewWork[any]("trigger")
						require.True(t, gate.Tell(do(func(s *supervisor.Supervisor) error { s.Submit("a", w); return nil })))
						trigger = r
					default:
						w, r := supervisor.NewWork[any]("trigger")
						require.True(t, gate.Tell(do(func(s *supervisor.Supervisor) error { s.Submit("trigger", w); return nil })))
						trigger = r
					}
					exit := <-ended
					if place == "Close" {
						require.Equal(t, messages.ExitFailed, exit.Kind, "how it ended counts for more than how it closed")
					} else {
						require.Equal(t, w.kind, exit.Kind)
					}
					synctest.Wait()
					require.Equal(t, inits.Load(), terminates.Load(), "no child outlives its supervisor")
					for _, r := range []supervisor.Reply[any]{hold, waiting} {
						_, err := r.Wait(context.Background())
						require.Error(t, err)
					}
					if trigger != (supervisor.Reply[any]{}) {
						_, err := trigger.Wait(context.Background())
						require.Error(t, err)
					}
					require.Equal(t, "again", answer(t, submit(t, gate, "a", "again")), "the next incarnation of the supervisor is well")
					stop(t, sys)
					require.Equal(t, inits.Load(), terminates.Load())
				})
			})
		}
	}
}

// TestGuardOpen has a supervisor that does not open: the start of the system
// fails, and nothing of it is left.
func TestGuardOpen(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*supervisor.Supervisor) error{
		"error":  func(*supervisor.Supervisor) error { return errTest },
		"panic":  func(*supervisor.Supervisor) error { panic(errTest) },
		"goexit": func(*supervisor.Supervisor) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				closed := 0
				d := &handler{open: open, close: func(*supervisor.Supervisor, supervisor.Exit) { closed++ }}
				_, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: d})}})
				require.Error(t, err)
				if name != "goexit" {
					require.ErrorIs(t, err, errTest)
				}
				require.Equal(t, 1, closed, "what was opened is closed")
			})
		})
	}
}

// TestPoison does to actors what this package never does: it sends them
// Hollywood's poison pill. It counts as a failure; nothing is orphaned.
func TestPoison(t *testing.T) {
	t.Parallel()
	t.Run("child", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var terminates atomic.Int32
			child := echo
			child.terminate = func(*supervisor.Ctx, supervisor.Exit) { terminates.Add(1) }
			sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
				supervise("gate", supervisor.Options{Handler: dynamic(child), Strategy: strategy.RestartOnce()}),
			}})
			require.Equal(t, 1, answer(t, submit(t, sys.Ref("gate"), "k", 1)))
			ended := sys.Monitor("gate", "k")
			<-sys.Poison(sys.Ref("gate", "k")).Done()
			require.Equal(t, messages.ExitKilled, (<-ended).Kind)
			synctest.Wait()
			require.EqualValues(t, 1, terminates.Load())
			require.Equal(t, 2, answer(t, submit(t, sys.Ref("gate"), "k", 2)))
			n, err := sys.Snapshot(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 2, n.Children[0].Children[0].Epoch, "it was restarted")
			stop(t, sys)
		})
	})
	t.Run("supervisor", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var terminates atomic.Int32
			child := behaviour{terminate: func(*supervisor.Ctx, supervisor.Exit) { terminates.Add(1) }}
			sys := startOnly(t, supervisor.SystemOptions{
				Children: []supervisor.Spec{{Key: "gate", Restart: strategy.Permanent, New: func() supervisor.Behaviour {
					return supervisor.New(supervisor.Options{Children: []supervisor.Spec{{Key: "a", New: of(child)}, {Key: "b", New: of(child)}}})
				}}},
				Strategy: strategy.OneForOne(),
			})
			a := sys.Ref("gate", "a")
			require.True(t, a.Tell(1))
			<-sys.Poison(sys.Ref("gate")).Done()
			synctest.Wait()
			require.EqualValues(t, 2, terminates.Load())
			require.True(t, a.Tell(1), "a Ref to a static child survives a restart of its supervisor")
			stop(t, sys)
		})
	})
}

// TestGuarded says how code of a host ended, whichever way that was.
func TestGuarded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		f    func() error
		want messages.ExitKind
	}{
		"panic":  {func() error { panic("on purpose") }, messages.ExitPanicked},
		"goexit": {func() error { runtime.Goexit(); return nil }, messages.ExitKilled},
		"error":  {func() error { return errTest }, ""},
		"nil":    {func() error { return nil }, ""},
	} {
		told := make(chan error, 1)
		go supervisor.Guarded(tc.f, func(err error) { told <- err })
		err := <-told
		exit, ok := errors.AsType[supervisor.Exit](err)
		require.Equal(t, tc.want != "", ok, name)
		require.Equal(t, tc.want, exit.Kind, name)
		require.Equal(t, tc.want == messages.ExitPanicked, exit.Panic != nil, name)
		if name == "error" {
			require.ErrorIs(t, err, errTest)
		} else if !ok {
			require.NoError(t, err)
		}
	}
}
