//go:build linux

package repl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// picture makes a PNG without a library: a red disc on blue ground.
const picture = `import base64, struct, zlib
from IPython.display import display

def show(w=48, h=48):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + b"".join(
        b"\xe0\x30\x30" if (x - w / 2) ** 2 + (y - h / 2) ** 2 < (w / 3) ** 2 else b"\x30\x60\xc0" for x in range(w)) for y in range(h))
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    display({"image/png": base64.b64encode(png).decode(), "text/plain": "a disc"}, raw=True)
`

// TestGatewayScreens shows a Jupyter kernel on a narrow and on a wide terminal,
// with colours: images are drawn, and the kernel completes and inspects.
func TestGatewayScreens(t *testing.T) {
	t.Parallel()
	python := testpython.Path(t)
	for _, width := range []int{40, 120} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			m := driver{t: t, screen: &own{t: t}}
			dir := t.TempDir()
			work := filepath.Join(dir, "work")
			require.NoError(t, os.Mkdir(work, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(work, "picture.py"), []byte(picture), 0o600))
			name := func(of string) string { return fmt.Sprintf("gateway_%s_%d", of, width) }
			m.begin(work, width, 30, "env", "-u", "NO_COLOR", "COPPICE_HOME="+dir, "HOME="+dir, "PI_COPPICE_TEST_MARK="+messages.NewID(), command, "repl", "--backend", "gateway", "--python", python)
			m.wait(">>>")

			m.text("from picture import show; show()")
			m.keys("Enter")
			m.wait("a disc\n✓")
			m.golden(name("image"))
			m.keys("C-l")

			m.text("import math")
			m.keys("Enter")
			m.wait("import math\n✓")
			m.text("math.isq")
			m.keys("Tab")
			m.wait("math.isqrt")
			m.text("(17)")
			m.keys("Enter")
			m.wait("\n4\n✓")
			m.text("len")
			m.keys("F1")
			m.wait("number of items")
			m.golden(name("inspect"))
			m.keys("C-u", "C-l")

			m.text("input('name? ')")
			m.keys("Enter")
			m.wait("waiting for input")
			m.golden(name("asking"))
			m.text("Ada")
			m.keys("Enter")
			m.wait("'Ada'\n✓")
			m.keys("C-l")

			m.text("def ratio(a, b):")
			m.keys("Enter")
			m.text("return a / b")
			m.keys("Enter", "Enter")
			m.wait("return a / b\n✓")
			m.text("ratio(1, 0)")
			m.keys("Enter")
			m.wait("division by zero\n✗")
			m.golden(name("error"))
			m.keys("C-l")

			m.text("print(1);import time;time.sleep(600)")
			m.keys("Enter")
			m.wait("\n1\n") // it runs
			m.keys("C-c")
			m.wait("✗ cancelled")
			m.text("math.pi")
			m.keys("Enter")
			m.wait("3.14159")
			m.golden(name("interrupted"))
			m.keys("C-d")
			require.Eventually(t, m.ended, patience, fast, "Ctrl-D leaves")
		})
	}
}
