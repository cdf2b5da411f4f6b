package toolproc_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolproc"
)

func TestDetails(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                  "it said nothing",
		`plain text`:        "plain text",
		`{"detail":"text"}`: "text",
		`{"detail":[{"loc":["body","inputs","a","b"],"msg":"bad","type":"t"},{"loc":["query","x",0],"msg":"worse"}]}`: "a.b: bad; query.x.0: worse",
		`{"detail":{"code":7}}`: `{"code":7}`,
		`{"error":"text"}`:      "text",
		"\xff\xfe":              "\ufffd",
		`{"detail":[]}`:         "[]",
	} {
		require.Equal(t, want, toolproc.DetailOf([]byte(body)), body)
	}
	require.Len(t, toolproc.DetailOf([]byte(strings.Repeat("x", 10_000))), 503)
}

func FuzzDetails(f *testing.F) {
	f.Add([]byte(`{"detail":[{"loc":[1],"msg":"m"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if text := toolproc.DetailOf(body); text == "" || !utf8.ValidString(text) || utf8.RuneCountInString(text) > 503 {
			t.Fatalf("%q", text)
		}
	})
}
