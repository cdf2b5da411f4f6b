package httpapi

import (
	"context"
)

// Turn is leave to run one execution of a session that other servers could have. Any
// goroutine may call its methods.
type Turn interface {
	// Life ends when nothing that the execution comes to can ever be answered.
	Life() context.Context
	// Show waits until what there is to show may leave, and Answer until the result may.
	// An error says that it never may, or that ctx ended.
	Show(ctx context.Context) error
	Answer(ctx context.Context) error
	// News is what the caller has to know before anything of the execution runs: a
	// sentence, or "".
	News() string
	// Begun is called when the execution has its place, so that its result will say the
	// news. One that is refused before is not told of any.
	Begun()
	// End is called once, when the execution has ended.
	End()
}

// Enter begins the turn of an execution with an id. An error refuses the execution, of
// which nothing has begun then; one that is a [*httpserver.Refusal] says with what.
type Enter func(ctx context.Context, id string) (Turn, error)

// entering is the key under which a request's context has its Enter.
type entering struct{}

// WithEnter has an execution that a request starts ask for a turn before it runs. One that
// the server knows by its id is answered without.
func WithEnter(ctx context.Context, e Enter) context.Context {
	return context.WithValue(ctx, entering{}, e)
}

// Entered is what is asked for a turn for the execution of a request; nil: nothing is.
func Entered(ctx context.Context) Enter {
	e, _ := ctx.Value(entering{}).(Enter)
	return e
}
