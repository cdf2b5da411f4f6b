package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhichClaimIsLater: by its epoch, and within that by what its owner has written.
func TestWhichClaimIsLater(t *testing.T) {
	t.Parallel()
	was := Claim{Key: "k", Epoch: 5, Write: 7}
	entry := func(c Claim) Entry { return Entry{Key: claimKey("k"), Rev: "1", Value: encode(c)} }
	for _, tt := range []struct {
		epoch, write uint64
		later        bool
	}{{5, 7, false}, {5, 8, true}, {5, 6, false}, {6, 1, true}, {4, 9, false}} {
		c := Claim{Key: "k", Epoch: tt.epoch, Write: tt.write}
		require.Equal(t, tt.later, c.after(was), "%+v", tt)
		require.Equal(t, !tt.later, was.outdates(entry(c), "k"), "%+v", tt)
	}
	require.False(t, was.outdates(Entry{Key: claimKey("k")}, "k"), "there is none")
	require.False(t, was.outdates(Entry{Key: claimKey("k"), Rev: "1", Value: []byte("{")}, "k"), "whoever reads it hears of it")
	require.True(t, was.orphaned(time.Now()).after(was), "who waits for a later one has it")

	f := forgotten{Seq: 3}
	for seq, old := range map[uint64]bool{2: true, 3: true, 4: false} {
		require.Equal(t, old, f.outdates(Entry{Key: forgottenKey, Rev: "1", Value: encode(forgotten{Seq: seq})}), seq)
	}
	require.True(t, f.outdates(Entry{Key: forgottenKey}))
	require.False(t, f.outdates(Entry{Key: forgottenKey, Rev: "1", Value: []byte("{")}))
}

// TestPulseGap: as much as a gap may be is none.
func TestPulseGap(t *testing.T) {
	t.Parallel()
	ttl, from := 2*time.Second, time.Now()
	var p pulse
	p.beat(from, ttl)
	p.beat(from.Add(gap(ttl)), ttl)
	require.Equal(t, from, p.start)
	require.True(t, p.steady(p.last.Add(gap(ttl)), ttl))
	require.False(t, p.steady(p.last.Add(gap(ttl)+1), ttl))
	p.beat(p.last.Add(gap(ttl)+1), ttl)
	require.Equal(t, p.last, p.start)
}

// TestBounds: what is as long as it may be is taken.
func TestBounds(t *testing.T) {
	t.Parallel()
	require.NoError(t, ValidEntry("a", make([]byte, MaxValue)))
	for name, kept := range map[string]string{"azAZ09": "azAZ09", "`{@[/:": "------"} {
		require.True(t, strings.HasPrefix(newID(name), kept+"-"), newID(name))
	}
	for text, length := range map[string]int{"x": 1, strings.Repeat("x", 200): 200, strings.Repeat("x", 201): 200, strings.Repeat("x", 199) + "é": 199, strings.Repeat("é", 101): 200, strings.Repeat("\x80", 300): 0} {
		require.Len(t, clause(text), length, text)
	}
	directory := Guard(nil)
	for least, refused := range map[time.Duration]bool{100 * time.Millisecond: false, 100*time.Millisecond - 1: true, 99 * time.Microsecond: true} {
		o := Options{Directory: directory, TTL: least}
		require.Equal(t, refused, o.settle() != nil, least)
	}
	fits := MaxValue/2 - len(encode(Node{}))
	for more, refused := range map[int]bool{0: false, 1: true} {
		o := Options{Directory: directory, URL: strings.Repeat("x", fits+more)}
		err := o.settle()
		require.Equal(t, refused, err != nil, more)
		if refused {
			require.ErrorContains(t, err, fmt.Sprintf("have %d bytes: at most %d", MaxValue/2+1, MaxValue/2))
		}
	}
	require.EqualError(t, &SandboxError{Name: "a", Reason: "Pending"}, "the sandbox a is not there yet: Pending")
	require.EqualError(t, &SandboxError{Name: "a", Reason: "Pending", Message: "no node"}, "the sandbox a is not there yet: Pending: no node")
	for _, busy := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		m := &Member{o: Options{Load: func() Load { return Load{Busy: busy} }}}
		require.NotPanics(t, func() { encode(m.record(1, Up)) })
	}
	c, _, err := readClaim(Entry{Key: claimKey("k"), Rev: "1", Value: encode(Claim{Key: "k"})}, "")
	require.NoError(t, err)
	require.Equal(t, "k", c.Key)
	_, _, err = readClaim(Entry{Key: claimKey("k"), Rev: "1", Value: encode(Claim{Key: "k"})}, "j")
	require.Error(t, err)
}

// reads is a directory that answers reads in order.
type reads struct {
	Directory
	answers []func() (Entry, error)
}

func (r *reads) Get(context.Context, string) (Entry, error) {
	next := r.answers[0]
	r.answers = r.answers[1:]
	return next()
}

// TestLater: who knows that there is another entry does not go by an error, by the entry that was
// replaced, or by one that is older still.
func TestLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entry := func(rev Revision) func() (Entry, error) {
			return func() (Entry, error) { return Entry{Key: "k", Rev: rev}, nil }
		}
		r := &reads{answers: []func() (Entry, error){
			entry("2"),
			func() (Entry, error) { return Entry{Key: "k", Rev: "9"}, errors.New("away") },
			entry("1"), entry("2"), entry("3"),
		}}
		e, err := later(t.Context(), r, Entry{Key: "k", Rev: "2"}, func(e Entry) bool { return e.Rev == "1" })
		require.NoError(t, err)
		require.Equal(t, Revision("3"), e.Rev)
		require.Empty(t, r.answers)

		r.answers = []func() (Entry, error){entry("2"), func() (Entry, error) { return Entry{}, ErrClosed }}
		_, err = later(t.Context(), r, Entry{Key: "k", Rev: "2"}, func(Entry) bool { return false })
		require.ErrorIs(t, err, ErrClosed)
		require.Empty(t, r.answers, "it is not asked again")

		ctx, cancel := context.WithCancel(t.Context())
		away := errors.New("away")
		require.Equal(t, ErrUnknown.Error()+": away", unknown(ctx, away).Error())
		cancel()
		require.Equal(t, ErrUnknown.Error()+": context canceled: away", unknown(ctx, away).Error())
		require.Equal(t, ErrUnknown.Error()+": context canceled", unknown(ctx, context.Canceled).Error())
	})
}

// TestRosterOfWhatIsBroken: a record that cannot be read is of no node.
func TestRosterOfWhatIsBroken(t *testing.T) {
	t.Parallel()
	r := &Roster{nodes: map[string]Node{}, changed: make(chan struct{})}
	r.take(Entry{Key: "node.a", Rev: "1", Value: []byte("{")})
	r.take(Entry{Key: "node.b"})
	require.Empty(t, r.nodes)
	r.take(Entry{Key: "node.c", Rev: "1", Value: encode(Node{ID: "c", State: Up})})
	require.Len(t, r.nodes, 1)
}

// TestListWaits: a roster that does not know of all nodes yet is waited for, until it is closed.
func TestListWaits(t *testing.T) {
	t.Parallel()
	r := &Roster{nodes: map[string]Node{}, changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.List(ctx)
	require.ErrorIs(t, err, context.Canceled)
	r.changed = nil
	_, err = r.List(t.Context())
	require.ErrorIs(t, err, errClosedRoster)
}
