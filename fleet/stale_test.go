package fleet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// older is a directory that answers reads of claims from what it is given, as long as there is any.
type older struct {
	fleet.Directory
	written, answers []fleet.Entry // no two requests for claims come at once here
}

func (d *older) Swap(ctx context.Context, key string, value []byte, prev fleet.Revision) (fleet.Revision, error) {
	rev, err := d.Directory.Swap(ctx, key, value, prev)
	if err == nil && strings.HasPrefix(key, "session.") {
		d.written = append(d.written, fleet.Entry{Key: key, Value: value, Rev: rev})
	}
	return rev, err
}

func (d *older) Get(ctx context.Context, key string) (fleet.Entry, error) {
	if strings.HasPrefix(key, "session.") && len(d.answers) > 0 {
		e := d.answers[0]
		d.answers = d.answers[1:]
		return e, nil
	}
	return d.Directory.Get(ctx, key)
}

// TestAnOlderClaimIsNoAnswer: an owner that has not heard of what it wrote is not told by what
// stood there before, nor by a read that finds nothing.
func TestAnOlderClaimIsNoAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := &older{}
		a := w.join("a", func(o *fleet.Options) { d.Directory, o.Directory = o.Directory, d })
		o := w.claim(a, "k")
		require.NoError(t, o.Keep(t.Context(), "1", long()))
		faults, seen := first(1, "swap", "session.", fleettest.Fault{Mute: true})
		a.link.Faults(faults)
		d.answers = []fleet.Entry{d.written[0], {Key: d.written[0].Key}}
		require.NoError(t, o.Keep(t.Context(), "2", long()))
		require.EqualValues(t, 2, seen.Load())
		require.Empty(t, d.answers)
		require.Equal(t, "2", o.Kept())
		require.NoError(t, w.begin(o, fleet.Call{}).Answer(t.Context()))
	})
}

// TestFirstStays: a claim of which its node has not heard is adopted with all that it says.
func TestFirstStays(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.join("a")
		require.NoError(t, w.claim(a, "k").Release(t.Context()))
		reads := 0
		a.link.Faults(func(op, key string) fleettest.Fault {
			if op == "get" && strings.HasPrefix(key, "session.") {
				reads++
				return fleettest.Fault{Drop: reads > 1} // what has happened it cannot read
			}
			return onClaims(fleettest.Fault{Mute: true})(op, key)
		})
		_, err := a.Claim(soon(t), "k")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.link.Faults(nil)
		o := w.claim(a, "k")
		require.EqualValues(t, 2, o.Epoch())
		require.EqualValues(t, 1, o.First())
	})
}

// TestWhatCannotBeReadIsNotForgotten: whoever asks for the key hears of it.
func TestWhatCannotBeReadIsNotForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.join("a", forgets)
		d := w.store.Open()
		defer func() { require.NoError(t, d.Close()) }()
		_, err := d.Swap(t.Context(), "session.k", []byte("{"), "")
		require.NoError(t, err)
		time.Sleep(2 * forgotten)
		e, err := d.Get(t.Context(), "session.k")
		require.NoError(t, err)
		require.Equal(t, "{", string(e.Value))
	})
}
