//go:build linux

package terminal_test

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/test/terminal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestScreen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"text":                {"ab\r\nc", "ab\nc\n\n"},
		"wraps":               {"0123456789ab", "0123456789\nab\n\n"},
		"wraps late":          {"0123456789\r\nab", "0123456789\nab\n\n"},
		"scrolls":             {"a\r\nb\r\nc\r\nd", "b\nc\nd\n"},
		"wide":                {"日本\bx", "日 x\n\n\n"},
		"wide at the end":     {"012345678日", "012345678\n日\n\n"},
		"accent":              {"e\u0301\u0323x", "e\u0301\u0323x\n\n\n"},
		"cursor":              {"abc\x1b[1;2HX\x1b[3;1Hz\x1b[A\x1b[2Cy", "aXc\n   y\nz\n"},
		"columns":             {"abc\x1b[2GX\x1b[2dY\x1b[DZ", "aXc\n  Z\n\n"},
		"erase row":           {"abcdef\x1b[3D\x1b[K\r\nabc\x1b[1K\r\nabc\x1b[2K", "abc\n\n\n"},
		"erase screen":        {"a\r\nb\r\nc\x1b[2;1H\x1b[J", "a\n\n\n"},
		"erase characters":    {"abcdef\x1b[2G\x1b[2X", "a  def\n\n\n"},
		"delete and insert":   {"abcdef\x1b[2G\x1b[2P\x1b[@", "a def\n\n\n"},
		"insert line":         {"a\r\nb\x1b[1;1H\x1b[Lz", "z\na\nb\n"},
		"delete line":         {"a\r\nb\r\nc\x1b[1;1H\x1b[M", "b\nc\n\n"},
		"region":              {"a\r\nb\r\nc\x1b[1;2r\x1b[2;1H\nx", "b\nx\nc\n"},
		"reverse":             {"a\x1b[1;1H\x1bMz", "z\na\n\n"},
		"repeat":              {"-\x1b[4b", "-----\n\n\n"},
		"save and restore":    {"ab\x1b7\x1b[3;3Hx\x1b8c", "abc\n\n  x\n"},
		"titles and graphics": {"\x1b]0;t\aa\x1b]8;;u\x1b\\b\x1bPq#0\x1b\\c\x1b_Gx\x1b\\d", "abcd\n\n\n"},
		"modes and questions": {"\x1b[?1049h\x1b[?25l\x1b[>4;1m\x1b[?2026$p\x1b[ca", "a\n\n\n"},
		"tab":                 {"a\tb", "a       b\n\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, bytes := terminal.NewScreen(10, 3), terminal.NewScreen(10, 3)
			_, _ = whole.Write([]byte(tc.in))
			for i := range len(tc.in) {
				_, _ = bytes.Write([]byte{tc.in[i]})
			}
			require.Equal(t, tc.want, whole.Text())
			require.Equal(t, tc.want, bytes.Text(), "byte by byte")
			require.Empty(t, whole.Unknown)
		})
	}
	s := terminal.NewScreen(4, 1)
	_, _ = s.Write([]byte("\x1b[1;31ma\x1b[22;39;48;2;1;2;3mb\x1b[0;2;38;5;9mc\x1b[md\x1b[9y\x1bQ"))
	require.Equal(t, [][]terminal.Cell{{{Text: "a", Ink: "31", Bold: true}, {Text: "b", Ground: "48;2;1;2;3"}, {Text: "c", Ink: "38;5;9", Dim: true}, {Text: "d"}}}, s.Cells())
	require.Equal(t, []string{"CSI 9y", "\x1bQ"}, s.Unknown)
}

// TestScreenTakesAnything: no output makes it panic or changes its size.
func TestScreenTakesAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := terminal.NewScreen(7, 3)
		for _, p := range rapid.SliceOfN(rapid.OneOf(
			rapid.StringMatching(`\x1b\[[0-9]{0,3}(;[0-9]{0,2})?[@A-Zabdefm]`), rapid.SampledFrom([]string{"\x1b7", "\x1b8", "\x1bM", "日", "\u0301", "\n", "\r", "\t", "\b"}), rapid.StringN(0, 9, 20),
		), 0, 40).Draw(t, "output") {
			_, _ = s.Write([]byte(p))
			cells := s.Cells()
			require.Len(t, cells, 3)
			for _, row := range cells {
				require.Len(t, row, 7)
			}
		}
	})
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	term, err := terminal.Start(exec.CommandContext(t.Context(), "sh", "-c", `stty size; test -t 0 && read -r line && echo "got $line"; read -r _`), 20, 5)
	require.NoError(t, err)
	defer term.Close()
	see := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(term.Text(), text) }, time.Minute, 5*time.Millisecond, "%s", text)
	}
	see("5 20\n")
	require.NoError(t, term.Type("hello"))
	require.NoError(t, term.Press("Enter"))
	see("got hello\n")
	require.Error(t, term.Press("Nowhere"))
	require.NoError(t, term.Press("C-c"))
	<-term.Ended()
	require.Error(t, term.Err())

	stays, err := terminal.Start(exec.CommandContext(t.Context(), "sh", "-c", "echo here; read -r _"), 20, 5)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(stays.Text(), "here") }, time.Minute, 5*time.Millisecond)
	stays.Close() // its terminal is gone, so it is too
	stays.Close()
	_, err = terminal.Start(exec.CommandContext(t.Context(), "/no/such/program"), 20, 5)
	require.Error(t, err)
}

func TestDevice(t *testing.T) {
	t.Parallel()
	tty, err := terminal.Open(100, 30)
	require.NoError(t, err)
	defer tty.Close()
	require.NoError(t, tty.Type("typed\n"))
	line, err := bufio.NewReader(tty.Program).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "typed\n", line)
	require.NoError(t, tty.Await("typed", time.Minute))
	echoes, err := tty.Echoes()
	require.NoError(t, err)
	require.True(t, echoes)
	require.ErrorContains(t, tty.Await("never", time.Millisecond), `does not show "never"`)
}
