package fleettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
)

// Patience is how long one thing may take that the suite waits for.
const Patience = time.Minute

// Open makes an empty store, and returns what opens directories of it: each stands for
// another process. The test that it is for closes what it has opened.
type Open func(t *testing.T) func(t *testing.T) fleet.Directory

// Run runs the suite.
func Run(t *testing.T, open Open) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, func(*testing.T) fleet.Directory)
	}{
		{"swaps by revision", swaps},
		{"values come back as they were", values},
		{"refuses what no directory takes", refuses},
		{"an entry is removed by its revision", removes},
		{"one of many makes an entry", oneWinner},
		{"counts what many add", counts},
		{"a read comes to see what was swapped", reads},
		{"a watch tells what is there and what changes", watches},
		{"a watch tells changes in order", watchOrder},
		{"what it is asked ends with the context", contexts},
		{"after Close there is nothing more", closes},
		{"nodes share keys", members},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

// within is a context for one thing that the suite waits for.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// mustSwap swaps what nobody else does.
func mustSwap(t *testing.T, d fleet.Directory, key, value string, prev fleet.Revision) fleet.Revision {
	t.Helper()
	rev, err := d.Swap(within(t), key, []byte(value), prev)
	require.NoError(t, err)
	require.NotEmpty(t, rev)
	require.NotEqual(t, prev, rev)
	return rev
}

func swaps(t *testing.T, open func(*testing.T) fleet.Directory) {
	a, b := open(t), open(t)
	ctx := within(t)
	e, err := a.Get(ctx, "none.of-it")
	require.NoError(t, err)
	require.Equal(t, fleet.Entry{Key: "none.of-it"}, e)
	_, err = a.Swap(ctx, "none.of-it", []byte("x"), "7")
	require.ErrorIs(t, err, fleet.ErrConflict, "there is no entry of that revision")

	first := mustSwap(t, a, "k.1", "first", "")
	_, err = b.Swap(ctx, "k.1", []byte("x"), "")
	require.ErrorIs(t, err, fleet.ErrConflict)
	second := mustSwap(t, b, "k.1", "second", first)
	_, err = a.Swap(ctx, "k.1", []byte("x"), first)
	require.ErrorIs(t, err, fleet.ErrConflict)
	other := mustSwap(t, a, "k.2", "other", "")
	_, err = a.Swap(ctx, "k.1", []byte("x"), other)
	require.ErrorIs(t, err, fleet.ErrConflict, "a revision of another key")
	third := mustSwap(t, a, "k.1", "first", second)
	require.NotEqual(t, first, third, "the same value again is another entry")
	_, err = b.Swap(ctx, "k.1", []byte("x"), first)
	require.ErrorIs(t, err, fleet.ErrConflict)
}

func removes(t *testing.T, open func(*testing.T) fleet.Directory) {
	a, b := open(t), open(t)
	ctx := within(t)
	require.NoError(t, a.Remove(ctx, "none", "7"), "it is not there")
	require.NoError(t, a.Remove(ctx, "none", ""))
	first := mustSwap(t, a, "k.1", "first", "")
	other := mustSwap(t, a, "k.2", "other", "")
	second := mustSwap(t, a, "k.1", "second", first)
	require.NoError(t, b.Remove(ctx, "k.1", first), "another has its place")
	require.NoError(t, b.Remove(ctx, "k.1", ""))
	third := mustSwap(t, b, "k.1", "third", second)

	require.NoError(t, b.Remove(ctx, "k.1", third))
	require.NoError(t, a.Remove(ctx, "k.1", third), "again")
	for _, d := range []fleet.Directory{a, b} {
		require.Equal(t, fleet.Entry{Key: "k.1"}, eventually(t, d, "k.1", ""))
	}
	for _, rev := range []fleet.Revision{first, second, third, other} {
		_, err := a.Swap(ctx, "k.1", []byte("x"), rev)
		require.ErrorIs(t, err, fleet.ErrConflict, "there is no entry of that revision")
	}
	l := watching(t, a, "k.")
	require.Equal(t, "k.2", l.next(t).Key, "what is not there is not told")
	require.Empty(t, l.next(t).Key)
	fourth := mustSwap(t, a, "k.1", "first", "")
	require.NotContains(t, []fleet.Revision{first, second, third}, fourth)
	require.Equal(t, fleet.Entry{Key: "k.1", Value: []byte("first"), Rev: fourth}, l.next(t))
	for _, rev := range []fleet.Revision{first, second, third} {
		require.NoError(t, b.Remove(ctx, "k.1", rev))
	}
	mustSwap(t, b, "k.1", "fifth", fourth)
	eventually(t, a, "k.2", other)
}

func values(t *testing.T, open func(*testing.T) fleet.Directory) {
	d := open(t)
	for i, value := range [][]byte{{}, {0}, []byte("\xff\x00\r\n\"{}"), bytes.Repeat([]byte("0123456789abcdef"), fleet.MaxValue/16)} {
		key := "v." + strconv.Itoa(i)
		mine := bytes.Clone(value)
		rev, err := d.Swap(within(t), key, mine, "")
		require.NoError(t, err)
		for j := range mine {
			mine[j] = 'x' // it is the caller's again
		}
		e := eventually(t, d, key, rev)
		require.True(t, bytes.Equal(value, e.Value), key)
	}
	long := string(bytes.Repeat([]byte("k"), fleet.MaxKey))
	eventually(t, d, long, mustSwap(t, d, long, "v", ""))
}

// eventually reads a key until it has a revision.
func eventually(t *testing.T, d fleet.Directory, key string, rev fleet.Revision) fleet.Entry {
	t.Helper()
	var e fleet.Entry
	require.Eventually(t, func() bool {
		var err error
		e, err = d.Get(t.Context(), key)
		return err == nil && e.Rev == rev
	}, Patience, time.Millisecond)
	return e
}

func refuses(t *testing.T, open func(*testing.T) fleet.Directory) {
	d := open(t)
	for _, key := range []string{"", ".", "a.", ".a", "a..b", "a b", "a*", "a.>", "ä", "a/b", string(bytes.Repeat([]byte("k"), fleet.MaxKey+1))} {
		_, err := d.Swap(within(t), key, nil, "")
		require.Error(t, err, key)
		require.NotErrorIs(t, err, fleet.ErrConflict, key)
		_, err = d.Get(within(t), key)
		require.Error(t, err, key)
	}
	require.Error(t, d.Remove(within(t), "a b", "7"))
	_, err := d.Swap(within(t), "k", make([]byte, fleet.MaxValue+1), "")
	require.Error(t, err)
	require.NotErrorIs(t, err, fleet.ErrConflict)
	mustSwap(t, d, "k", "", "")
}

func oneWinner(t *testing.T, open func(*testing.T) fleet.Directory) {
	Race(t, []fleet.Directory{open(t), open(t)}, 10, 10)
}

// Rounds is how many a race has: a thousand in the long run (COPPICE_TEST_FULL), else fewer.
func Rounds() int {
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		return 1000
	}
	return 50
}

// Race has many goroutines, spread over the directories, swap the same entry at once, for so
// many rounds, and fails unless in each of them one wins and all others learn that they have
// lost. Every tenth round begins without an entry.
func Race(t *testing.T, handles []fleet.Directory, rounds, many int) {
	t.Helper()
	const key = "race.k"
	var rev fleet.Revision
	for round := range rounds {
		if round%10 == 0 && rev != "" {
			require.NoError(t, handles[0].Remove(within(t), key, rev))
			rev = ""
		}
		var (
			all  sync.WaitGroup
			ctx  = within(t)
			revs = make([]fleet.Revision, many)
			errs = make([]error, many)
		)
		for i := range many {
			all.Go(func() {
				revs[i], errs[i] = handles[i%len(handles)].Swap(ctx, key, fmt.Appendf(nil, "%d of round %d", i, round), rev)
			})
		}
		all.Wait()
		winner := -1
		for i, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, fleet.ErrConflict, "round %d", round)
				continue
			}
			require.Equal(t, -1, winner, "two have won round %d", round)
			winner = i
		}
		require.NotEqual(t, -1, winner, "nobody has won round %d", round)
		rev = revs[winner]
		e := eventually(t, handles[0], key, rev)
		require.Equal(t, fmt.Sprintf("%d of round %d", winner, round), string(e.Value))
	}
}

func counts(t *testing.T, open func(*testing.T) fleet.Directory) {
	const many, each = 6, 10
	handles := []fleet.Directory{open(t), open(t)}
	first := mustSwap(t, handles[0], "n", "0", "")
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		revs = map[fleet.Revision]bool{first: true}
	)
	for i := range many {
		all.Go(func() {
			d := handles[i%2]
			for range each {
				rev, err := add(within(t), d, "n")
				if err != nil {
					t.Errorf("add one: %v", err)
					return
				}
				mu.Lock()
				if revs[rev] {
					t.Errorf("revision %s twice", rev)
				}
				revs[rev] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Len(t, revs, many*each+1)
	require.Eventually(t, func() bool {
		e, err := handles[0].Get(t.Context(), "n")
		return err == nil && string(e.Value) == strconv.Itoa(many*each)
	}, Patience, time.Millisecond)
}

// add adds one to a number, once.
func add(ctx context.Context, d fleet.Directory, key string) (fleet.Revision, error) {
	for {
		e, err := d.Get(ctx, key)
		if err != nil {
			return "", err
		}
		n, err := strconv.Atoi(string(e.Value))
		if err != nil {
			return "", err
		}
		rev, err := d.Swap(ctx, key, []byte(strconv.Itoa(n+1)), e.Rev)
		if !errors.Is(err, fleet.ErrConflict) {
			return rev, err
		}
	}
}

func reads(t *testing.T, open func(*testing.T) fleet.Directory) {
	a, b := open(t), open(t)
	var rev fleet.Revision
	for i := range 10 {
		value := strconv.Itoa(i)
		rev = mustSwap(t, a, "r", value, rev)
		require.Equal(t, value, string(eventually(t, b, "r", rev).Value))
	}
}
