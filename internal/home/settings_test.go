package home_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/home"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "2m": 2 * time.Minute, "1.5": 1500 * time.Millisecond, "10": 10 * time.Second, "250ms": 250 * time.Millisecond,
		"": 0, "0": 0, "-1": 0, "-1s": 0, "NaN": 0, "Inf": 0, "1e300": 0, "soon": 0, "2 m": 0, "9000000h": 0,
	} {
		got, err := home.Duration(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want == 0, err != nil, text)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1": 1, "4096": 4096, "512M": 512 << 20, "512m": 512 << 20, "2G": 2 << 30, "2GB": 2 << 30, "2GiB": 2 << 30, "1.5K": 1536, "1T": 1 << 40, "100B": 100,
		"": 0, "0": 0, "0.5": 0, "-1": 0, "M": 0, "B": 0, "2X": 0, "2 G": 0, "NaN": 0, "InfG": 0, "9e18K": 0, "much": 0, "9223372036854775807": 0, "2i": 0,
	} {
		got, err := home.Size(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want == 0, err != nil, text)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		count  int
		length int
		share  float64
		limit  time.Duration
	}{
		"1":    {1, 1, 1, time.Second},
		"1.5":  {0, 1, 1.5, 1500 * time.Millisecond},
		"0":    {},
		"-1":   {},
		"none": {limit: -1},
		"NaN":  {},
		"2G":   {},
		"1K":   {length: 1024},
		"5m":   {length: 5 << 20, limit: 5 * time.Minute},
		"1e10": {share: 0, limit: 0},
		"":     {},
	} {
		count, err := home.Count(text)
		require.Equal(t, want.count, count, text)
		require.Equal(t, want.count == 0, err != nil, text)
		length, err := home.Length(text)
		require.Equal(t, want.length, length, text)
		require.Equal(t, want.length == 0, err != nil, text)
		share, err := home.Share(text)
		require.InDelta(t, want.share, share, 0, text)
		require.Equal(t, want.share == 0, err != nil, text)
		limit, err := home.Limit(text)
		require.Equal(t, want.limit, limit, text)
		require.Equal(t, want.limit == 0, err != nil, text)
	}
}

// TestFill has variables where a field has no value of its own.
func TestFill(t *testing.T) {
	t.Parallel()
	env := []string{"SIZE=2K", "BAD=much", "LIST=a" + string(filepath.ListSeparator) + "b", "GAP=a" + string(filepath.ListSeparator)}
	size := int64(0)
	require.NoError(t, home.Fill(env, "NONE", &size, home.Size))
	require.Zero(t, size)
	require.ErrorContains(t, home.Fill(env, "BAD", &size, home.Size), `BAD: "much" is no size; write it as 512M, 2G or a number of bytes`)
	require.Zero(t, size)
	require.NoError(t, home.Fill(env, "SIZE", &size, home.Size))
	require.EqualValues(t, 2048, size)
	require.NoError(t, home.Fill(env, "BAD", &size, home.Size), "the field has a value")

	var list []string
	require.NoError(t, home.FillList(env, "NONE", &list))
	require.Nil(t, list)
	require.ErrorContains(t, home.FillList(env, "GAP", &list), "GAP: ")
	require.Nil(t, list)
	require.NoError(t, home.FillList(env, "LIST", &list))
	require.Equal(t, []string{"a", "b"}, list)
	require.NoError(t, home.FillList(env, "GAP", &list), "the field has a value")
}
