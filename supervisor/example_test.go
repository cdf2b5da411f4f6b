package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// counter is an actor that counts its messages, and can be asked for their number.
type counter struct{ n int }

type howMany struct{}

func (c *counter) Init(*supervisor.Ctx) error                 { return nil }
func (c *counter) Terminate(*supervisor.Ctx, supervisor.Exit) {}

func (c *counter) Handle(_ *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case string:
		c.n++
	case supervisor.Work:
		if _, ok := m.Msg.(howMany); !ok {
			return supervisor.Unknown(msg)
		}
		m.Settle(c.n)
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

// A system with one actor, which gets messages and a question.
func Example() {
	ctx := context.Background()
	sys, err := supervisor.Start(ctx, supervisor.SystemOptions{
		Children: []supervisor.Spec{{Key: "counter", New: func() supervisor.Behaviour { return &counter{} }}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sys.Shutdown(ctx)

	ref := sys.Ref("counter")
	ref.Tell("one")
	ref.Tell("two")
	n, err := supervisor.Ask[int](ctx, ref, howMany{})
	fmt.Println(n, err)
	// Output: 2 <nil>
}

// session is a child of the desk below: it keeps a sum over its works, and
// fails when it is asked to divide by zero.
type session struct{ sum int }

func (s *session) Init(*supervisor.Ctx) error                 { return nil }
func (s *session) Terminate(*supervisor.Ctx, supervisor.Exit) {}

func (s *session) Handle(ctx *supervisor.Ctx, msg any) error {
	w, ok := msg.(supervisor.Work)
	if !ok {
		return supervisor.Unknown(msg)
	}
	s.sum += 100 / w.Msg.(int) // panics for 0
	ctx.Finish(w, s.sum)
	return nil
}

// desk is the Handler of a supervisor: it hands each request to the session of
// its key.
type desk struct{ supervisor.BaseHandler }

type request struct {
	session string
	w       supervisor.Work
}

func (desk) Handle(s *supervisor.Supervisor, msg any) error {
	r, ok := msg.(request)
	if !ok {
		return supervisor.Unknown(msg)
	}
	s.Submit(r.session, r.w)
	return nil
}

func (desk) Spec(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error) {
	return supervisor.Spec{Kind: "session", New: func() supervisor.Behaviour { return &session{} }}, nil
}

// A supervisor that makes a child for every key, restarts one that fails, and
// ends those that are idle.
func ExampleSupervisor() {
	ctx := context.Background()
	sys, err := supervisor.Start(ctx, supervisor.SystemOptions{Children: []supervisor.Spec{{
		Key: "desk",
		New: func() supervisor.Behaviour {
			return supervisor.New(supervisor.Options{
				Handler: desk{},
				Strategy: strategy.Chain(
					strategy.RestartOnce(),
					strategy.IdleTTL(5*time.Minute),
					strategy.LRU(4),
				),
			})
		},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sys.Shutdown(ctx)

	divide := func(by int) (int, error) {
		w, reply := supervisor.NewWork[int](by)
		if !sys.Ref("desk").Tell(request{"ann", w}) {
			return 0, supervisor.ErrNoProcess
		}
		return reply.Wait(ctx)
	}
	fmt.Println(divide(2))
	fmt.Println(divide(4))
	_, err = divide(0)
	fmt.Println(errors.Is(err, supervisor.ErrLost))
	fmt.Println(divide(5)) // a new incarnation begins at zero
	// Output:
	// 50 <nil>
	// 75 <nil>
	// true
	// 20 <nil>
}
