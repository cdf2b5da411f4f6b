package opportunity

import (
	"context"
	"errors"
	"sync"
)

// Within returns a context that ends when the budget is spent, and a function that
// gives it back, which must be called and which joins what watches. The cause is then
// a [*SpentError]. The subject is who is waited for, as with [Begin]. It is for a
// start that reads and writes, where [Wait] has no channel to wait for. What is ready
// soon is not looked at, and that time is not counted.
func Within(ctx context.Context, b Budget, s Subject) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		if !takesLong(ctx, b, over) {
			return
		}
		var watch Watch
		watch.Start()
		defer watch.Stop()
		err := Wait(ctx, b, Begin(s, &watch), over)
		if _, spent := errors.AsType[*SpentError](err); spent {
			cancel(err)
		}
	})
	return ctx, sync.OnceFunc(func() {
		close(over)
		watching.Wait()
		cancel(context.Canceled)
	})
}
