package ndjson_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/ndjson"
)

// TestCharactersOfBytes: what a stream's bytes say is the same in whatever pieces they come,
// and as Python's decoder says it.
func TestCharactersOfBytes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ bytes, want string }{
		{"", ""},
		{"plain", "plain"},
		{"\u00e9\u20ac\U0001f600", "\u00e9\u20ac\U0001f600"},
		{"a\xffb", "a\ufffdb"},
		{"\xe2\x82", "\ufffd"},   // one that was not finished
		{"\xe2\x82A", "\ufffdA"}, // nor this one
		{"\xf0\x9f\x98\xff", "\ufffd\ufffd"},
		{"\xed\xa0\x80", "\ufffd\ufffd\ufffd"}, // a surrogate
		{"\xc0\x80", "\ufffd\ufffd"},
		{"\x80\x80", "\ufffd\ufffd"},
		{"\xf5\x80", "\ufffd\ufffd"},
		{"\xe2\xe2\x82\xac", "\ufffd\u20ac"},
	} {
		var whole ndjson.Text
		require.Equal(t, tt.want, strings.Join(whole.Add([]byte(tt.bytes)), "")+whole.End(), "%q", tt.bytes)
		var each ndjson.Text
		got := ""
		for i := range len(tt.bytes) {
			got += strings.Join(each.Add([]byte{tt.bytes[i]}), "")
		}
		require.Equal(t, tt.want, got+each.End(), "%q, byte by byte", tt.bytes)
	}
	var long ndjson.Text
	pieces := long.Add([]byte(strings.Repeat("\u20ac", 20<<10)))
	require.Len(t, pieces, 4)
	for _, p := range pieces {
		require.LessOrEqual(t, len(p), 16<<10)
		require.Empty(t, strings.Trim(p, "\u20ac"))
	}
}
