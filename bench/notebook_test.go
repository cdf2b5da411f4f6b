//go:build linux

package bench_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-run/coppice/notebook"
)

// largeNotebook is the size of the notebooks here, in bytes.
const largeNotebook = 100 << 20

// writeLargeNotebook makes a notebook of that many bytes, nearly all of it pictures. It
// holds little of it: a process that is started takes over the peak of the one
// that starts it.
func writeLargeNotebook(b *testing.B, size int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "large.ipynb")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	random := rand.NewChaCha8([32]byte{1})
	picture := make([]byte, 384<<10)
	comma := ""
	_, _ = w.WriteString("{\n \"cells\": [") // an error stays until Flush
	for written := 0; written < size; written += len(picture) * 4 / 3 {
		_, _ = random.Read(picture) // it never fails
		_, _ = fmt.Fprintf(w, "%s\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 1,\n   \"metadata\": {},\n   \"outputs\": [\n    {\n     \"data\": {\n      \"image/png\": \"", comma)
		encode := base64.NewEncoder(base64.StdEncoding, w)
		_, _ = encode.Write(picture)
		_ = encode.Close()
		_, _ = w.WriteString("\"\n     },\n     \"metadata\": {},\n     \"output_type\": \"display_data\"\n    }\n   ],\n   \"source\": [\n    \"fig = plot()\\n\",\n    \"fig\"\n   ]\n  }")
		comma = ","
	}
	_, _ = w.WriteString("\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 4\n}\n")
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkNotebookShow is `coppice notebook show large.ipynb:1-20` as a process:
// from its start to its end, and the most memory that it had. That is to be the
// same for a notebook that is four times as large.
func BenchmarkNotebookShow(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "coppice")
	if said, err := exec.Command("go", "build", "-o", bin, "../cmd/coppice").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, said)
	}
	for _, size := range []int{largeNotebook, 4 * largeNotebook} {
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			path := writeLargeNotebook(b, size)
			var most int64
			for b.Loop() {
				cmd := exec.Command(bin, "notebook", "show", path+":1-20")
				out, err := cmd.Output()
				if err != nil || bytes.Count(out, []byte("\n")) != 20 {
					b.Fatalf("%v: %q", err, out)
				}
				if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
					most = max(most, usage.Maxrss)
				}
			}
			b.ReportMetric(float64(most)/1024, "MiB-RSS")
		})
	}
}

// BenchmarkNotebookOutline reads the cells of such a notebook.
func BenchmarkNotebookOutline(b *testing.B) {
	path := writeLargeNotebook(b, largeNotebook)
	b.SetBytes(largeNotebook)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := notebook.OpenOutline(b.Context(), path); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNotebookOpen reads such a notebook.
func BenchmarkNotebookOpen(b *testing.B) {
	path := writeLargeNotebook(b, largeNotebook)
	b.SetBytes(largeNotebook)
	for b.Loop() {
		if _, err := notebook.Open(b.Context(), path); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNotebookSave changes a cell of such a notebook and saves it.
func BenchmarkNotebookSave(b *testing.B) {
	f, err := notebook.Open(b.Context(), writeLargeNotebook(b, largeNotebook))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(largeNotebook)
	for n := 0; b.Loop(); n++ {
		if _, err := f.SetSource(notebook.At(0), time.Duration(n).String()); err != nil {
			b.Fatal(err)
		}
		if _, err := f.Save(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
