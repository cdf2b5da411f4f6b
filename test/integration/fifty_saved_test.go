//go:build linux

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

// TestFiftyConversationsSave at once: each changes a variable after it has saved, finds the
// value that it had saved in another session, and its own as it was. With COPPICE_TEST_FULL=1
// there are fifty.
func TestFiftyConversationsSave(t *testing.T) {
	t.Parallel()
	conversations := 12
	if full() {
		conversations = 50
	}
	host := sleepy(t, t.TempDir(), func(o *coppice.Options) { o.Hibernate, o.MaxSessions = hibernate.Lossless, 2*conversations })
	found := make(chan int, conversations)
	var wg sync.WaitGroup
	for i := range conversations {
		wg.Go(func() {
			if err := savesAndFinds(context.Background(), host, i); err != nil {
				t.Errorf("conversation %d: %v", i, err)
				return
			}
			found <- i
		})
	}
	wg.Wait()
	require.Len(t, found, conversations, "all find what they had saved")
	require.Len(t, saved(t, host), conversations)
}

// savesAndFinds is one conversation.
func savesAndFinds(ctx context.Context, host *coppice.Host, i int) error {
	talks, goesOn, name := session(host, fmt.Sprint("talks-", i)), session(host, fmt.Sprint("goes-on-", i)), fmt.Sprint("point-", i)
	says := func(s *coppice.Session, code, want string, state messages.State) error {
		r, err := s.Execute(ctx, cells(code))
		if err == nil && (r.State != state || r.Cells[0].Output != want) {
			err = fmt.Errorf("%s: %s and %q, not %s and %q", code, r.State, r.Cells[0].Output, state, want)
		}
		return err
	}
	if err := says(talks, fmt.Sprintf("n = %d; words = {'of': [%d]}", i, i), "", messages.StateFresh); err != nil {
		return err
	}
	if report, err := talks.SaveCheckpoint(ctx, name, coppice.SaveOptions{}); err != nil || len(report.Kept) != 2 || len(report.Lost) > 0 {
		return errors.Join(err, fmt.Errorf("kept are %v, lost %v", report.Kept, report.Lost))
	}
	if err := says(talks, "n = -1; words['of'].append(-1)", "", messages.StateKept); err != nil {
		return err
	}
	if _, err := goesOn.RestoreCheckpoint(ctx, name, coppice.RestoreOptions{}); err != nil {
		return err
	}
	if err := says(goesOn, "n, words", fmt.Sprintf("(%d, {'of': [%d]})", i, i), messages.StateRestored); err != nil {
		return err
	}
	return says(talks, "n, words", fmt.Sprintf("(-1, {'of': [%d, -1]})", i), messages.StateKept)
}
