package runner

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		var whole text
		require.Equal(t, tt.want, whole.add([]byte(tt.bytes))+whole.end(), "%q", tt.bytes)
		var each text
		got := ""
		for i := range len(tt.bytes) {
			got += each.add([]byte{tt.bytes[i]})
		}
		require.Equal(t, tt.want, got+each.end(), "%q, byte by byte", tt.bytes)
	}
}
