package bytescan_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/bytescan"
)

func jsonString(b []byte) int {
	for i, c := range b {
		if c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(b)
}

func printable(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > 0x7e {
			return i
		}
	}
	return len(s)
}

// Each byte at each place of three words, before and behind each other byte.
func TestWhereARunEnds(t *testing.T) {
	for first := range 256 {
		for second := range 256 {
			b := bytes.Repeat([]byte("x"), 19)
			i := (first + 3*second) % len(b)
			b[i], b[(i+1)%len(b)] = byte(first), byte(second)
			if got, want := bytescan.JSONString(b), jsonString(b); got != want {
				t.Fatalf("JSONString(%q) = %d, not %d", b, got, want)
			}
			if got, want := bytescan.Printable(string(b)), printable(string(b)); got != want {
				t.Fatalf("Printable(%q) = %d, not %d", b, got, want)
			}
		}
	}
	require.Zero(t, bytescan.JSONString(nil))
	require.Zero(t, bytescan.Printable(""))
}

func FuzzWhereARunEnds(f *testing.F) {
	f.Add([]byte("plain text \"quoted\" \\ é 木\n\x7f\x80\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		require.Equal(t, jsonString(b), bytescan.JSONString(b))
		require.Equal(t, printable(string(b)), bytescan.Printable(string(b)))
	})
}

func TestQuoted(t *testing.T) {
	for _, tt := range []struct {
		in, text, rest string
		ok             bool
	}{
		{`"plain", more`, "plain", ", more", true},
		{`"\" \\ \/ \b\f\n\r\t"`, "\" \\ / \b\f\n\r\t", "", true},
		{`"é 木 😀"}`, "é 木 😀", "}", true},
		{`""`, "", "", true},
		{`"\u00e9"`, "", "", false}, // for encoding/json
		{`"open`, "", "", false},
		{`"open\`, "", "", false},
		{"\"a\nb\"", "", "", false},
		{"\"\xff\"", "", "", false},
		{`open"`, "", "", false},
		{``, "", "", false},
	} {
		quoted, rest, ok := bytescan.Quoted([]byte(tt.in))
		require.Equal(t, tt.ok, ok, tt.in)
		if ok {
			require.Equal(t, tt.text, bytescan.Unquote(quoted), tt.in)
			require.Equal(t, tt.rest, string(rest), tt.in)
		}
	}
}

func FuzzQuoted(f *testing.F) {
	f.Add([]byte(`"a\nb" more`))
	f.Add([]byte(`"é \u00e9 \/ \x"`))
	f.Fuzz(func(t *testing.T, b []byte) {
		quoted, rest, ok := bytescan.Quoted(b)
		if !ok {
			return
		}
		require.Equal(t, string(b), string(quoted)+string(rest))
		var want string
		require.NoError(t, json.Unmarshal(quoted, &want))
		require.Equal(t, want, bytescan.Unquote(quoted))
	})
}
