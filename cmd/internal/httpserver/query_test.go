package httpserver_test

import (
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]struct {
		n     int64
		given bool
		wrong string
	}{
		"":                              {},
		"?m=1":                          {},
		"?n=7":                          {n: 7, given: true},
		"?n=99999999999999999999999999": {n: math.MaxInt64, given: true},
		"?n=0":                          {given: true, wrong: "n must be a number from 1, not \"0\""},
		"?n=-99999999999999999999999":   {given: true, wrong: "from 1"},
		"?n=":                           {given: true, wrong: "from 1"},
		"?n":                            {given: true, wrong: "from 1"},
		"?n=1.5":                        {given: true, wrong: "from 1"},
		"?n=7&n=7":                      {given: true, wrong: "n is there 2 times"},
	} {
		n, given, err := httpserver.Number(httptest.NewRequest("GET", "/"+query, nil), "n", 1)
		require.Equal(t, want.n, n, query)
		require.Equal(t, want.given, given, query)
		if want.wrong == "" {
			require.NoError(t, err, query)
		} else {
			require.ErrorContains(t, err, want.wrong, query)
		}
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for query, want := range map[string]struct {
		at    time.Time
		wrong string
	}{
		"":                                 {},
		"?m=today":                         {},
		"?t=2026-01-02T15:04:05Z":          {at: day},
		"?t=2026-01-02T15:04:05.5Z":        {at: day.Add(time.Second / 2)},
		"?t=2026-01-02T16:04:05%2B01:00":   {at: day},
		"?t=":                              {wrong: "t must be a time, not \"\""},
		"?t":                               {wrong: "t must be a time"},
		"?t=today":                         {wrong: "t must be a time, not \"today\""},
		"?t=" + strings.Repeat("9", 1<<12): {wrong: strings.Repeat("9", 40) + "\""},
		"?t=2026-01-02T15:04:05Z&t=":       {wrong: "t is there 2 times"},
	} {
		at, err := httpserver.Time(httptest.NewRequest("GET", "/"+query, nil), "t")
		if want.wrong == "" {
			require.NoError(t, err, query)
		} else {
			require.ErrorContains(t, err, want.wrong, query)
		}
		require.True(t, want.at.Equal(at), "%s: %v", query, at)
	}
}
