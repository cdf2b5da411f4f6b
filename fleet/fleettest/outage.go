package fleettest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
)

// Outage holds directories of one store to what must be true when it is away for a while:
// a swap meanwhile is no conflict; what was acknowledged before is there afterwards; a node,
// a key, a watch and a roster go on, with what the store had before it went and what came
// after. stop takes the store away, start brings it back. The node and the roster are of
// the first directory, the watch and what others do of the second.
func Outage(t *testing.T, first, second fleet.Directory, stop, start func()) {
	t.Helper()
	m, err := fleet.Join(within(t), fleet.Options{Directory: first, Name: "one", URL: "http://127.0.0.1:1", TTL: 10 * Patience})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Leave(within(t))) }()
	roster := fleet.NewRoster(first, nil)
	defer roster.Close()
	o, err := m.Claim(within(t), "k")
	require.NoError(t, err)
	require.EqualValues(t, 1, o.Epoch())
	told := follow(t, second, "out.")
	rev := mustSwap(t, second, "out.k", "before", "")
	told.until(t, "before")

	stop()
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	_, err = second.Swap(short, "out.k", []byte("meanwhile"), "")
	cancel()
	require.Error(t, err)
	require.NotErrorIs(t, err, fleet.ErrConflict, "nobody has said so")
	require.NoError(t, m.Check(), "its lease goes on")

	start()
	require.Eventually(t, func() bool {
		e, err := second.Get(t.Context(), "out.k")
		return err == nil && e.Rev == rev
	}, Patience, 10*time.Millisecond, "what was acknowledged is there")
	rev = swapped(t, second, "out.k", "after", rev)
	told.until(t, "after")
	require.NoError(t, o.Release(within(t)))
	require.EqualValues(t, 2, claimed(t, m, "k").Epoch(), "the first is not forgotten")
	other, err := fleet.Join(within(t), fleet.Options{Directory: second, Name: "two", URL: "http://127.0.0.1:2", TTL: 10 * Patience})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Leave(within(t))) }()
	require.Eventually(t, func() bool {
		nodes, err := roster.List(t.Context())
		return err == nil && len(nodes) == 2
	}, Patience, 10*time.Millisecond, "who comes later is seen")
	eventually(t, second, "out.k", rev)
}

// Unbroken holds a directory to what must be true while a part of its store goes and comes
// back: what was acknowledged stays, each swap is done once at most, and a watch tells all
// of it. harm is called while a number is counted up, once.
func Unbroken(t *testing.T, d fleet.Directory, harm func()) {
	t.Helper()
	const steps = 60
	told := follow(t, d, "n.")
	was, err := d.Get(within(t), "n.k")
	require.NoError(t, err)
	rev := mustSwap(t, d, "n.k", "0", was.Rev)
	for i := 1; i <= steps; i++ {
		if i == steps/3 {
			harm()
		}
		rev = swapped(t, d, "n.k", strconv.Itoa(i), rev)
	}
	e := eventually(t, d, "n.k", rev)
	require.Equal(t, strconv.Itoa(steps), string(e.Value))
	told.until(t, strconv.Itoa(steps))
}

// swapped swaps what nobody else does, over errors, until it is known to be done.
func swapped(t *testing.T, d fleet.Directory, key, value string, prev fleet.Revision) fleet.Revision {
	t.Helper()
	for end := within(t); end.Err() == nil; {
		ctx, cancel := context.WithTimeout(end, 5*time.Second)
		rev, err := d.Swap(ctx, key, []byte(value), prev)
		if err == nil {
			cancel()
			return rev
		}
		e, read := d.Get(ctx, key)
		cancel()
		if read == nil && e.Rev != prev { // it was done without an answer
			require.Equal(t, value, string(e.Value), "after %v", err)
			return e.Rev
		}
		select {
		case <-end.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	require.FailNow(t, "the swap is not done", "%s to %s", key, value)
	return ""
}

// following is a watch that is begun again whenever it ends.
type following struct{ values chan string }

func follow(t *testing.T, d fleet.Directory, prefix string) *following {
	t.Helper()
	f := &following{values: make(chan string, 1000)}
	ready := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = d.Watch(ctx, prefix, func(e fleet.Entry) {
				if e.Key != "" {
					f.values <- string(e.Value)
					return
				}
				select {
				case ready <- struct{}{}:
				default:
				}
			})
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	select {
	case <-ready:
	case <-within(t).Done():
		require.FailNow(t, "the watch tells nothing")
	}
	return f
}

// until waits until the watch has told a value.
func (f *following) until(t *testing.T, value string) {
	t.Helper()
	for end := within(t).Done(); ; {
		select {
		case v := <-f.values:
			if v == value {
				return
			}
		case <-end:
			require.FailNow(t, "the watch does not tell", value)
		}
	}
}
