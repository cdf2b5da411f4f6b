package result_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/sinks/result"
)

func TestEstimateTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "hello world": 3, "hello, world": 8, "1 2 3": 5, "木林": 4,
		strings.Repeat("a", 40): 10, strings.Repeat("a", 40) + "1": 41,
	} {
		require.Equal(t, want, result.EstimateTokens(text), text)
	}
}

func TestLimitTokens(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text, want string
		limit      int
		path       string
	}{
		"fits":     {text: "1 2 3", limit: 5, want: "1 2 3"},
		"cut":      {text: "1 2 3 4", limit: 5, path: "/tmp/7.python.log", want: "1 2 3\n<system-reminder>\nThe output was too long (about 7 tokens, 1 line, 7B) and was cut after about 5 tokens. All of it is in /tmp/7.python.log. Read only the parts that you need, with your file tools or with Python; if you cannot read files, tell the user that the output was cut.\n</system-reminder>"},
		"not kept": {text: "木林森", limit: 4, want: "木林\n<system-reminder>\nThe output was too long (about 6 tokens, 1 line, 9B) and was cut after about 4 tokens. It was not kept; print less, or print it in parts.\n</system-reminder>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, cut := result.LimitTokens(tc.text, tc.limit, tc.path)
			require.Equal(t, tc.want, got)
			require.Equal(t, got != tc.text, cut)
		})
	}
	long := strings.Repeat("word ", 20_000)
	got, cut := result.LimitTokens(long, 0, "x")
	require.True(t, cut)
	require.Less(t, len(got), len(long))
}

// TestLimitTokensKeepsTheLongestHead compares with every prefix.
func TestLimitTokensKeepsTheLongestHead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z]{0,6}[ \n]|[0-9é木]|\xff){0,40}`).Draw(t, "text")
		limit := rapid.IntRange(1, 30).Draw(t, "limit")
		got, cut := result.LimitTokens(text, limit, "")
		if result.EstimateTokens(text) <= limit {
			require.Equal(t, text, got)
			require.False(t, cut)
			return
		}
		head, _, found := strings.Cut(got, "\n<system-reminder>")
		require.True(t, found && cut)
		require.True(t, strings.HasPrefix(text, head))
		want := ""
		for i := range len(text) + 1 {
			if (i == len(text) || utf8.RuneStart(text[i])) && result.EstimateTokens(text[:i]) <= limit {
				want = text[:i]
			}
		}
		require.Equal(t, want, head)
	})
}
