//go:build linux

package repl_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/terminal"
	"github.com/coppice-run/coppice/test/testpython"
)

// story is what the picture of `coppice run` runs.
const story = `# %% load
import csv
table = read("cities.csv")
for done in range(0, 101, 20):
    print(f"parsing {done:3} %", end="\r")
cities = {row["city"]: float(row["people"]) for row in csv.DictReader(table.splitlines())}
print(f"{len(cities)} cities       ")
cities

# %% share
def share(name, total):
    return cities[name] / total

share("Lima", total=sum(cities.values()))

# %% compare
share("Oslo", total=0)
`

const cities = "city,people\nOslo,0.7\nLima,10.9\nHanoi,8.4\n"

// fractal is an object with a picture, made without a library.
const fractal = `import struct, zlib

class Mandelbrot:
    """The Mandelbrot set, as a picture."""

    def __init__(self, width=128, height=64):
        self.width, self.height = width, height

    def __repr__(self):
        return f"Mandelbrot({self.width}, {self.height})"

    def pixel(self, x, y):
        c, z = complex(3.2 * x / self.width - 2.3, 2.4 * y / self.height - 1.2), 0
        for n in range(60):
            z = z * z + c
            if abs(z) > 2:
                return bytes((min(255, 9 * n), min(255, 40 + 14 * n), min(255, 90 + 20 * n)))
        return b"\x10\x10\x20"

    def _repr_png_(self):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        rows = b"".join(b"\0" + b"".join(self.pixel(x, y) for x in range(self.width)) for y in range(self.height))
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
`

// TestPictures runs what the pictures of the README show, in a real terminal,
// and holds that the command still shows it. With -update it draws the pictures
// anew from the same screens; nothing else makes them.
func TestPictures(t *testing.T) {
	t.Parallel()
	python := testpython.Path(t)
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	require.NoError(t, os.Mkdir(work, 0o700))
	for name, text := range map[string]string{"report.py": story, "cities.csv": cities, "fractal.py": fractal} {
		require.NoError(t, os.WriteFile(filepath.Join(work, name), []byte(text), 0o600))
	}
	begin := func(t *testing.T, m *own, width, height int, arguments ...string) {
		m.begin(work, width, height, append([]string{"env", "-u", "NO_COLOR", "-u", "COPPICE_IMAGES", "COPPICE_HOME=" + dir, "PI_COPPICE_TEST_MARK=" + messages.NewID(), command}, arguments...)...)
	}
	t.Run("run", func(t *testing.T) {
		t.Parallel()
		m := &own{t: t}
		begin(t, m, 84, 44, "run", "--backend", "runner", "--python", python, "--expand", "report.py")
		require.Eventually(t, func() bool {
			select {
			case <-m.term.Ended():
				return true
			default:
				return false
			}
		}, patience, fast)
		keep(t, m.term, "run")
	})
	t.Run("repl", func(t *testing.T) {
		t.Parallel()
		m := driver{t: t, screen: &own{t: t}}
		begin(t, m.screen.(*own), 84, 36, "repl", "--backend", "runner", "--python", python)
		m.wait(">>>")
		m.text("from fractal import Mandelbrot; Mandelbrot()")
		m.keys("Enter")
		m.wait("Mandelbrot(128, 64)\n✓")
		m.text("total = sum(n ** 3 for n in range(40)); total")
		m.keys("Enter")
		m.wait("608400\n✓")
		m.keys("C-t")
		m.wait("fork-server")
		m.text("total.bit")
		m.keys("Tab")
		m.wait("bit_length")
		keep(t, m.screen.(*own).term, "repl")
		m.keys("C-u", "C-d")
		require.Eventually(t, m.ended, patience, fast)
	})
}

// keep compares a screen with the text that was kept, or keeps it and draws it.
func keep(t *testing.T, term *terminal.Terminal, name string) {
	t.Helper()
	require.Empty(t, term.Unknown())
	shown := func() string { return settle(strings.TrimRight(term.Text(), "\n") + "\n") }
	file := filepath.Join("testdata", "picture_"+name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(shown()), 0o600))
		draw(t, term.Cells(), name)
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	for end := time.Now().Add(patience); shown() != string(want) && time.Now().Before(end); {
		<-time.After(fast) // the tree and the status line follow in their own time
	}
	require.Empty(t, cmp.Diff(string(want), shown()))
}

// draw writes the pictures of a screen, without the empty rows at its end.
func draw(t *testing.T, rows [][]terminal.Cell, name string) {
	t.Helper()
	empty := func(row []terminal.Cell) bool {
		for _, c := range row {
			if strings.TrimSpace(c.Text) != "" {
				return false
			}
		}
		return true
	}
	for len(rows) > 1 && empty(rows[len(rows)-1]) {
		rows = rows[:len(rows)-1]
	}
	for theme, light := range map[string]bool{"dark": false, "light": true} {
		in, err := json.Marshal(map[string]any{"rows": rows, "light": light})
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), testpython.Path(t), "picture.py", filepath.Join("pictures", name+"-"+theme+".png"))
		cmd.Stdin, cmd.Env = bytes.NewReader(in), append(os.Environ(), "PYTHONPATH="+testpython.Extras(t))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}
