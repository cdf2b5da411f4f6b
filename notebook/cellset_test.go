package notebook_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

func TestParseCells(t *testing.T) {
	for text, want := range map[string]string{
		"3": "0001000000", "2-5": "0011110000", "7-": "0000000111", "-2": "1110000000",
		"0,2-3,9-": "1011000001", "4, 1": "0100100000", "5-5": "0000010000",
	} {
		s, err := notebook.ParseCells(text)
		require.NoError(t, err, text)
		got := ""
		for i := range 10 {
			if s.Contains(i) {
				got += "1"
			} else {
				got += "0"
			}
		}
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-", "a", "1,", "5-2", "--3", "1-2-3", "99999999999", "1.5"} {
		_, err := notebook.ParseCells(text)
		require.ErrorIs(t, err, notebook.ErrArgument, "%q", text)
	}
}

func TestCellSetChecksItsCells(t *testing.T) {
	for text, outside := range map[string]bool{"2": false, "3": true, "0-3": true, "1-": false, "3-": true, "-2": false} {
		s, err := notebook.ParseCells(text)
		require.NoError(t, err)
		require.Equal(t, outside, s.Check(3) != nil, text)
	}
	require.EqualError(t, notebook.CellsFrom(7).Check(3), "no such cell: there is no cell 7; the last one is 2")
	require.ErrorIs(t, notebook.CellsFrom(0).Check(0), notebook.ErrNoCell)
	var all *notebook.CellSet
	require.True(t, all.Contains(12))
	require.NoError(t, all.Check(0))
}

// FuzzParseCells: a set is an error of its kind or has a cell, and the first cell
// that it has is one that the text allows.
func FuzzParseCells(f *testing.F) {
	for _, text := range []string{"3", "2-5", "7-", "-2", "0,2-3,9-", "", "-", "5-2", "99999999999", " 1 , 2 - 3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := notebook.ParseCells(text)
		if err != nil {
			require.ErrorIs(t, err, notebook.ErrArgument)
			return
		}
		first, _, _ := strings.Cut(text, ",")
		from, _, _ := strings.Cut(strings.TrimSpace(first), "-")
		n, err := strconv.Atoi("0" + from)
		require.NoError(t, err)
		require.True(t, s.Contains(n))
		require.NoError(t, s.Check(math.MaxInt))
	})
}
