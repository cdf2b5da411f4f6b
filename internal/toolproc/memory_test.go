package toolproc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolproc"
)

const raised = "Traceback (most recent call last):\n  File \"main.py\", line 3, in run\n    a = b\n"

// TestWhatAToolFailedWith: the type of the failure counts, and no text that mentions
// memory.
func TestWhatAToolFailedWith(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		detail, stderr, kind string
		memory               bool
	}{
		"the type in the answer":          {"MemoryError: ", "", "MemoryError", true},
		"without a text":                  {"MemoryError", "", "MemoryError", true},
		"a package's":                     {"numpy._core._exceptions._ArrayMemoryError: Unable to allocate 9 GiB", "", "numpy._core._exceptions._ArrayMemoryError", true},
		"the system's":                    {"OSError: [Errno 12] Cannot allocate memory", "", "OSError", true},
		"a traceback":                     {"Internal Server Error", raised + "MemoryError\n", "MemoryError", true},
		"a traceback among other lines":   {"it broke", "started\n" + raised + "MemoryError: no room\n-----\n", "MemoryError", true},
		"the last of two tracebacks":      {"it broke", raised + "MemoryError\n\nDuring handling of the above exception, another exception occurred:\n\n" + raised + "KeyError: 1\n", "KeyError", false},
		"a text about memory":             {"ValueError: the note says: out of memory is fine", "", "ValueError", false},
		"a text that names the type":      {"ValueError: MemoryError: no", raised + "ValueError: MemoryError: no\n", "ValueError", false},
		"a text of several lines":         {"it broke", raised + "ValueError: one\nMemoryError: two\n", "ValueError", false},
		"the answer before another run":   {"ValueError: no", raised + "MemoryError\n", "ValueError", false},
		"a graphics card":                 {"torch.OutOfMemoryError: CUDA out of memory", "CUDA out of memory\n", "torch.OutOfMemoryError", false},
		"a line that was only printed":    {"it broke", "MemoryError\nCannot allocate memory\nstd::bad_alloc\n", "", false},
		"another error of the system":     {"OSError: [Errno 2] Cannot allocate memory", "", "OSError", false},
		"a sentence with a colon":         {"Sorry: out of memory", "", "", false},
		"a type that is only called so":   {"x.OutOfMemoryErrorSummary", "", "", false},
		"nothing":                         {"", "", "", false},
		"a traceback that does not end":   {"it broke", raised, "", false},
		"a thread that was not to be had": {"RuntimeError: can't start new thread", "", "RuntimeError", false},
	} {
		kind, memory := toolproc.FailedWith(tc.detail, tc.stderr)
		require.Equal(t, tc.kind, kind, name)
		require.Equal(t, tc.memory, memory, name)
	}
}

func TestStandardErrorOfAResultIsBounded(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short\n", toolproc.Bounded("short\n"))
	text := toolproc.Bounded(strings.Repeat("a line of it\n", 5000) + "the end\n")
	require.Less(t, len(text), 9<<10)
	head, rest, _ := strings.Cut(text, "\n")
	require.Regexp(t, `^\[\d+ bytes before this are in the tool's log\]$`, head)
	require.True(t, strings.HasPrefix(rest, "a line of it\n"))
	require.True(t, strings.HasSuffix(rest, "\nthe end\n"))
	require.Less(t, len(toolproc.Bounded(strings.Repeat("ä", 20_000))), 9<<10, "also of one line")
}
