package launcher_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// count tells 0, 1, 2 ... until nothing listens any more or its context ends, and then
// takes a second to end. It leaves why.
func count(why *error) func(context.Context, func(int) error) string {
	return func(ctx context.Context, tell func(int) error) string {
		for i := 0; *why == nil; i++ {
			*why = tell(i)
		}
		<-ctx.Done()
		time.Sleep(time.Second)
		return "over"
	}
}

// TestHearing: whatever hears, the work ends before its caller goes on.
func TestHearing(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	for name, tc := range map[string]struct {
		hear func() error
		// ends is how the caller ends, "" in order; why is what the work gets.
		ends messages.ExitKind
		why  error
	}{
		"an error": {func() error { return no }, "", no},
		"a panic":  {func() error { panic("it broke") }, messages.ExitPanicked, launcher.ErrOver},
		"an exit":  {func() error { runtime.Goexit(); return nil }, messages.ExitKilled, launcher.ErrOver},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			said, why := "", error(nil)
			ended := make(chan error, 1)
			go supervisor.Guarded(func() error {
				said = launcher.Hearing(context.Background(), func(i int) error {
					if i < 3 {
						return nil
					}
					return tc.hear()
				}, count(&why))
				return nil
			}, func(err error) { ended <- err })
			err := <-ended
			if tc.ends == "" {
				require.NoError(t, err, name)
				require.Equal(t, "over", said, name)
			} else {
				var exit supervisor.Exit
				require.ErrorAs(t, err, &exit, name)
				require.Equal(t, tc.ends, exit.Kind, name)
			}
			require.Equal(t, tc.why, why, name)
			require.Equal(t, time.Second, time.Since(began), "the work has ended before its caller: %s", name)
		})
	}
}

// TestHearingToTheEnd passes everything on, in order.
func TestHearingToTheEnd(t *testing.T) {
	t.Parallel()
	var heard []int
	r := launcher.Hearing(t.Context(), func(i int) error {
		heard = append(heard, i)
		return nil
	}, func(_ context.Context, tell func(int) error) error {
		return errors.Join(tell(1), tell(2), tell(3))
	})
	require.NoError(t, r)
	require.Equal(t, []int{1, 2, 3}, heard)
}
