package hostcall_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/hostcall"
)

// TestPathAt: the path has the indices of lists, for values of each kind.
func TestPathAt(t *testing.T) {
	t.Parallel()
	type leaf struct {
		N int            `json:"n"`
		S string         `json:"s"`
		L []int          `json:"l"`
		M map[string]int `json:"m"`
	}
	for document, want := range map[string]string{
		`{"a":[{"n":1},{"n":"x"}]}`:                   "a[1].n",
		`{"a":[{"s":"} ] , \" "},{"s":[{"n":1}]}]}`:   "a[1].s",
		`{"a":[{"l":[1,2,{}]}]}`:                      "a[0].l[2]",
		`{"a":[{"m":{"k":1,"l":null,"z":true}}]}`:     "a[0].m.z",
		`{"b":{"x":[[],[[1]]]}, "a" : [ {} , "x" ] }`: "a[1]",
		`{"a":{"n":1}}`:                               "a",
		`[1]`:                                         "",
		`"x"`:                                         "",
		`{"a":[{"n":1e999}]}`:                         "a[0].n",
	} {
		var v struct {
			A []leaf `json:"a"`
		}
		err := json.Unmarshal([]byte(document), &v)
		var wrong *json.UnmarshalTypeError
		require.ErrorAs(t, err, &wrong, document)
		require.Equal(t, want, hostcall.PathAt([]byte(document), wrong.Offset), document)
	}
	require.Empty(t, hostcall.PathAt([]byte(`{"a":`), 99))
}
