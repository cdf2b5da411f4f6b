package fleet

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNextEpoch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		was   Claim
		over  bool
		gone  uint64
		floor uint64
		epoch uint64
		may   bool
	}{
		{"nobody has had it", Claim{}, false, 0, 0, 1, true},
		{"it was forgotten, if anybody has had it", Claim{}, false, 0, 7, 8, true},
		{"it was released", Claim{Epoch: 4}, false, 0, 3, 5, true},
		{"it was released, and others were forgotten", Claim{Epoch: 4}, false, 0, 7, 8, true},
		{"its owner is alive", Claim{Epoch: 4, Node: "b"}, false, 0, 7, 0, false},
		{"its owner is dead", Claim{Epoch: 4, Node: "b"}, true, 0, 0, 5, true},
		{"its owner is dead, and it may be a claim made again", Claim{Epoch: 1, Node: "b"}, true, 0, 7, 8, true},
		{"a claim of this life that was not heard of", Claim{Epoch: 4, Node: "a"}, false, 0, 3, 4, true},
		{"one that may have been made again", Claim{Epoch: 4, Node: "a"}, false, 0, 4, 5, true},
		{"one after a release that was not heard of", Claim{Epoch: 4, Node: "a"}, false, 4, 0, 5, true},
		{"a later one", Claim{Epoch: 6, Node: "a"}, false, 4, 0, 6, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			epoch, may := nextEpoch(c.was, "a", c.over, c.gone, c.floor)
			require.Equal(t, c.may, may)
			require.Equal(t, c.epoch, epoch)
		})
	}
}

// TestLife is a model of renewals: the lease never lasts longer than TTL after the moment
// before the latest acknowledged renewal was sent.
func TestLife(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const ttl = 100
		l := life{id: "a", ttl: ttl, last: Entry{Key: nodeKey("a")}}
		var now, newest time.Duration
		held := false
		rev := 0
		entry := func(n Node) Entry {
			rev++
			return Entry{Key: nodeKey("a"), Value: encode(n), Rev: Revision(strings.Repeat("r", rev))}
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) { now += time.Duration(rapid.IntRange(1, 60).Draw(t, "passes")) },
			"acknowledged": func(*rapid.T) {
				seq := l.next(now)
				l.ack(entry(Node{ID: "a", State: Up, Seq: seq}), seq, now)
				newest, held = now, true
			},
			"unheard": func(t *rapid.T) {
				seq, sent := l.next(now), l.sent
				now += time.Duration(rapid.IntRange(0, 60).Draw(t, "until it was read"))
				if rapid.Bool().Draw(t, "it had happened") {
					if l.met(entry(Node{ID: "a", State: Up, Seq: seq})) != lifeRenewed {
						t.Fatal("a renewal of this life is not known again")
					}
					newest, held = sent, true
				}
			},
			"stale": func(t *rapid.T) {
				if v := l.met(l.last); v != lifeAgain {
					t.Fatalf("the last record: %d", v)
				}
				if held && l.met(entry(Node{ID: "a", State: Up, Seq: l.acked - 1})) != lifeDoubt {
					t.Fatal("an older record is in doubt")
				}
				if l.met(Entry{Key: nodeKey("a")}) == lifeRenewed {
					t.Fatal("no record is no renewal")
				}
			},
			"": func(t *rapid.T) {
				if want := held && now-newest < ttl; l.valid(now) != want {
					t.Fatalf("valid at %d: %v, renewed at %d", now, !want, newest)
				}
			},
		})
		if l.met(entry(Node{ID: "a", State: Dead, By: "b"})) != lifeOver || l.valid(now) || !errors.Is(l.check(now), ErrOver) {
			t.Fatal("dead is dead")
		}
		l.ack(entry(Node{ID: "a"}), 9, now)
		if l.valid(now) {
			t.Fatal("and stays it")
		}
	})
}

func TestSights(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	const ttl = 10 * time.Second
	node := func(id string, seq uint64, state State) Node { return Node{ID: id, Seq: seq, TTL: ttl, State: state} }
	var s sights
	require.True(t, s.see(node("a", 1, Up), "1", at(0)))
	s.see(node("me", 1, Up), "2", at(0))
	dead, _ := s.due("me", ttl, at(100))
	require.Empty(t, dead, "an observer that was never renewed has no judgement")
	for n := 0; n <= 10; n += 2 {
		s.pulse.beat(at(n), ttl)
	}
	require.False(t, s.see(node("a", 1, Up), "1b", at(9))) // another record, the same renewal
	dead, next := s.due("me", ttl, at(10))
	require.Empty(t, dead)
	require.Equal(t, at(11), next)
	dead, _ = s.due("me", ttl, at(11))
	require.Len(t, dead, 1)
	require.Equal(t, Revision("1b"), dead[0].rev)
	dead, next = s.due("me", ttl, at(16))
	require.Empty(t, dead, "it was not renewed itself for more than half of TTL")
	require.Zero(t, next)
	s.pulse.beat(at(16), ttl)
	dead, next = s.due("me", ttl, at(16))
	require.Empty(t, dead, "the silence of others counts from then")
	require.Equal(t, at(27), next)
	require.False(t, s.see(node("a", 2, Up), "3", at(20)), "that is later")
	_, next = s.due("me", ttl, at(20))
	require.Equal(t, at(31), next)
	s.missing("a", ttl, at(25))
	_, next = s.due("me", ttl, at(25))
	require.Equal(t, at(31), next, "it was seen")
	s.missing("b", time.Second, at(25))
	_, next = s.due("me", ttl, at(25))
	require.Equal(t, at(25).Add(1100*time.Millisecond), next)
	s.see(node("a", 2, Left), "4", at(26))
	s.see(node("b", 0, Dead), "5", at(26))
	_, next = s.due("me", ttl, at(26))
	require.Zero(t, next)
}

func TestFurthest(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := furthest(func() time.Time { return now })
	require.Zero(t, c())
	now = now.Add(time.Second)
	require.Equal(t, time.Second, c())
	now = now.Round(0).Add(time.Hour) // asleep: the clock on the wall alone has gone on
	require.Equal(t, time.Hour+time.Second, c())
	now = now.Add(-time.Hour)
	require.Equal(t, time.Hour+time.Second, c(), "it never goes back")
}

func TestSystemClock(t *testing.T) {
	t.Parallel()
	c := SystemClock()
	from, began := c(), time.Now()
	for time.Since(began) < time.Millisecond {
		require.GreaterOrEqual(t, c(), from)
	}
	require.GreaterOrEqual(t, c()-from, time.Millisecond/2)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", ".", "a.", ".a", "a..b", "a b", "ä", "a*", "a/b", strings.Repeat("k", MaxKey+1)} {
		require.Error(t, ValidKey(key), key)
	}
	for _, key := range []string{"a", "a.b", "A-_=9.z", "azAZ09", strings.Repeat("k", MaxKey), claimKey("any \x00 key"), nodeKey(newID("a host / of any name " + strings.Repeat("é", 100)))} {
		require.NoError(t, ValidKey(key), key)
	}
	first, second := newID("a"), newID("a")
	require.NotEqual(t, first, second, "each life has an ID of its own")
	require.Error(t, ValidEntry("a", make([]byte, MaxValue+1)))
}

// TestRecords: what cannot be read is an error, not another state.
func TestRecords(t *testing.T) {
	t.Parallel()
	_, found, err := readNode(Entry{Key: "node.a"})
	require.NoError(t, err)
	require.False(t, found)
	_, _, err = readNode(Entry{Key: "node.a", Rev: "1", Value: []byte("{")})
	require.Error(t, err)
	_, _, err = readNode(Entry{Key: "node.a", Rev: "1", Value: encode(Node{ID: "b"})})
	require.Error(t, err)
	_, _, err = readClaim(Entry{Key: claimKey("k"), Rev: "1", Value: encode(Claim{Key: "j"})}, "k")
	require.Error(t, err)
	_, _, err = readClaim(Entry{Key: claimKey("k"), Rev: "1", Value: nil}, "k")
	require.Error(t, err)
}
