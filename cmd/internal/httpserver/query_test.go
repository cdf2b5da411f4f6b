package httpserver_test

import (
	"math"
	"net/http/httptest"
	"testing"

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
