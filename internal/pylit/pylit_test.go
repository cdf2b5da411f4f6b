package pylit_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/pylit"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestString(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                   `""`,
		`a "b" 'c' \n`:       `"a \"b\" 'c' \\n"`,
		"a\nb\tc\rd":         `"a\nb\tc\rd"`,
		"\x00\x1b\x7f":       `"\x00\x1b\x7f"`,
		"é界😀":                `"é界😀"`,
		"\u00a0\u2028\ufeff": `"\u00a0\u2028\ufeff"`,
		"\U000e0001":         `"\U000e0001"`,
		"a\xffb":             `"a` + "\ufffd" + `b"`,
	} {
		require.Equal(t, want, pylit.String(text))
	}
}

// evaluate is a Python that reads literals, a line each in hex, and answers with
// the text of each.
const evaluate = `
import ast, sys
for line in sys.stdin:
    source = bytes.fromhex(line).decode("utf-8")
    assert "\n" not in source
    print(ast.literal_eval(source).encode("utf-8").hex(), flush=True)
`

// python is one interpreter for all inputs of a test.
type python struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

func startPython(tb testing.TB) *python {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), testpython.Path(tb), "-I", "-c", evaluate)
	in, err := cmd.StdinPipe()
	require.NoError(tb, err)
	out, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &python{in: in, out: bufio.NewReader(out)}
}

func (p *python) eval(tb testing.TB, literal string) string {
	tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.in, "%x\n", literal)
	require.NoError(tb, err)
	line, err := p.out.ReadString('\n')
	require.NoError(tb, err, "%s", literal)
	text, err := hex.DecodeString(strings.TrimSpace(line))
	require.NoError(tb, err)
	return string(text)
}

// Every character is what it was, and a line break does not break the line.
func TestPythonReadsEveryCharacter(t *testing.T) {
	t.Parallel()
	p := startPython(t)
	var all strings.Builder
	for r := range rune(0x110000) {
		if all.WriteRune(r); r%0x1000 == 0xfff {
			require.Equal(t, strings.ToValidUTF8(all.String(), "\ufffd"), p.eval(t, pylit.String(all.String())))
			all.Reset()
		}
	}
}

// FuzzString holds that a Python gets the text back.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", `"""`, `\`, `\\"`, "\\\n", "a\xff\xed\xa0\x80", `\N{BULLET}`, "\r\n", "\u2029'", "#"} {
		f.Add(s)
	}
	p := startPython(f)
	f.Fuzz(func(t *testing.T, s string) {
		require.Equal(t, string([]rune(s)), p.eval(t, pylit.String(s)))
	})
}
