package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
)

// unreachable is a failure that is not certain to last, and not certain to pass.
type unreachable struct{}

func (unreachable) Error() string { return "it does not answer" }

func (unreachable) Lasting() bool { return false }

// Who needs the process waits for it, unless its last failure says that there is no
// use in that.
func TestAvailability(t *testing.T) {
	t.Parallel()
	killed := fmt.Errorf("it %w", &process.ExitError{Code: -1, Signal: 9, Name: "killed"})
	broken := fmt.Errorf("it %w", &process.ExitError{Code: 1})
	slow := fmt.Errorf("it gave %w", &opportunity.SpentError{})
	none := error(&pyenv.NoPythonError{Asked: "x", Steps: []pyenv.Step{{Why: "is not a program"}}})
	stopped := errors.New("stopped")
	begin := func(a *kernel.Availability[int]) { a.Begin() }
	is := func(n int) func(*kernel.Availability[int]) {
		return func(a *kernel.Availability[int]) { a.There(n) }
	}
	ends := func(err error) func(*kernel.Availability[int]) {
		return func(a *kernel.Availability[int]) { a.Ended(err) }
	}
	type does = []func(*kernel.Availability[int])
	for name, tc := range map[string]struct {
		before, after does // before the call, and one each second after it
		want          int
		err           error
		at            time.Duration
		again         bool
	}{
		"it is there":                          {before: does{begin, is(1)}, want: 1},
		"it comes":                             {before: does{begin}, after: does{is(1)}, want: 1, at: 1},
		"it cannot be started":                 {before: does{begin}, after: does{ends(broken)}, err: broken, at: 1},
		"it could not be, and may be now":      {before: does{begin, ends(broken)}, after: does{begin, is(1)}, want: 1, at: 2, again: true},
		"it could not be, and cannot":          {before: does{begin, ends(broken)}, after: does{begin, ends(broken)}, err: broken, at: 2, again: true},
		"its start was killed":                 {before: does{begin}, after: does{ends(killed), begin, ends(killed), begin, is(1)}, want: 1, at: 5, again: true},
		"Python was disturbed":                 {before: does{begin}, after: does{ends(&pyenv.NoPythonError{Disturbed: true}), begin, is(1)}, want: 1, at: 3, again: true},
		"it does not answer":                   {before: does{begin}, after: does{ends(unreachable{})}, err: unreachable{}, at: 1},
		"it got no processor":                  {before: does{begin}, after: does{ends(slow), begin, is(1)}, want: 1, at: 3, again: true},
		"it was there":                         {before: does{begin, is(1), ends(killed)}, after: does{begin, is(2)}, want: 2, at: 2, again: true},
		"it was there, and ended by itself":    {before: does{begin, is(1), ends(broken)}, after: does{begin, is(2)}, want: 2, at: 2, again: true},
		"it was there, and cannot be started":  {before: does{begin, is(1), ends(killed)}, after: does{begin, ends(broken)}, err: broken, at: 2, again: true},
		"there is no Python":                   {before: does{begin, ends(none)}, err: none},
		"there was none, and it is asked now":  {before: does{begin, ends(none), begin}, after: does{is(1)}, want: 1, at: 1, again: true},
		"it is closed":                         {before: does{begin, func(a *kernel.Availability[int]) { a.Close(stopped) }}, err: stopped},
		"it is closed while it is waited for":  {before: does{begin}, after: does{func(a *kernel.Availability[int]) { a.Close(stopped) }}, err: stopped, at: 1},
		"it does not come back within an hour": {before: does{begin, is(1), ends(killed)}, err: context.DeadlineExceeded, at: 3600, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := kernel.NewAvailability[int]("the process")
				for _, f := range tc.before {
					f(a)
				}
				start := time.Now()
				go func() {
					for _, f := range tc.after {
						time.Sleep(time.Second)
						f(a)
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				again, text := false, ""
				got, err := a.Await(ctx, func(s string) { text = s }, func(w kernel.Waiting) { again = w.Again })
				require.Equal(t, tc.want, got)
				require.ErrorIs(t, err, tc.err)
				require.Equal(t, tc.at*time.Second, time.Since(start))
				require.Equal(t, tc.again, again)
				if again {
					require.Contains(t, text, "waiting for the process, which is started again: ")
				}
				if _, late := errors.AsType[*kernel.AwayError](err); late {
					require.ErrorIs(t, err, killed)
					require.EqualError(t, err, "waited 1h0m0s for the process, which is started again by itself; the last time: it was ended by signal 9 (killed): context deadline exceeded; make the call again")
				}
			})
		})
	}
}
