//go:build unix

package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/shell"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/a/b-c": "/a/b-c", "/a b": "'/a b'", "it's": `'it'\''s'`, "": "''", "$HOME": "'$HOME'", "a\nb": "'a\nb'", "~": "'~'",
	} {
		require.Equal(t, want, shell.Quote(text))
	}
}

// FuzzQuote asks a real shell for what it has read.
func FuzzQuote(f *testing.F) {
	for _, text := range []string{"", "a b", "it's", `\'"`, "$(touch x)`id`", "!#&|;<>()*?[~", "-n", "\n\n", "\xff\u00e9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\x00") || len(text) > 1<<10 {
			return // no argument of a program
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s. "+shell.Quote(text)).Output()
		require.NoError(t, err)
		require.Equal(t, text+".", string(out))
	})
}
