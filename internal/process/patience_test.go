package process

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAProcessThatCannotBeLookedAtHasItsTime(t *testing.T) {
	t.Parallel()
	for ends, want := range map[time.Duration]bool{time.Second: true, 2*time.Second - 1: true, 3 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			done := make(chan struct{})
			defer time.AfterFunc(ends, func() { close(done) }).Stop()
			begin := time.Now()
			require.Equal(t, want, endsWithin(t.Context(), 2*time.Second, done, Identity{}))
			require.Equal(t, min(ends, 2*time.Second), time.Since(begin))
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			require.False(t, endsWithin(ctx, time.Second, nil, Identity{}))
		})
	}
}

func TestStarved(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, tc := range map[string]struct {
		before, now usage
		want        bool
	}{
		"it sleeps":                  {usage{ran: s}, usage{ran: s}, false},
		"it wants, and has not run":  {usage{ran: s}, usage{ran: s, wants: true}, true},
		"it wants, and ran a little": {usage{ran: s}, usage{ran: s + s/5, wants: true}, true},
		"it runs":                    {usage{ran: s}, usage{ran: 2 * s, wants: true}, false},
		"it cannot be looked at":     {usage{ran: s, wants: true}, usage{}, false},
		"it ran, and sleeps now":     {usage{ran: s, wants: true}, usage{ran: 2 * s}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, tc.now.starved(tc.before, s))
		})
	}
}
