//go:build linux

package toolproc_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/internal/toolspec"
)

// answering is a tool that has one output, and one answer to each run.
func answering(tb testing.TB, kind string, answer []byte, length bool) *toolproc.Process {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if length {
			w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		}
		for part := range bytes.Lines(answer) {
			_, _ = w.Write(part) // whoever has gone has gone
		}
	}))
	tb.Cleanup(server.Close)
	tool, err := toolspec.Parse([]byte(`{"id": "x", "name": "x", "inputs": [], "outputs": [{"key": "result", "label": "R", "type": "` + kind + `"}]}`))
	require.NoError(tb, err)
	p := toolproc.Attach(tool, server.Listener.Addr())
	tb.Cleanup(p.Detach)
	return p
}

// largeAnswers are two of a size: one text, and many small values.
func largeAnswers(size int) map[string][]byte {
	return map[string][]byte{
		"text": []byte(`{"result": "` + strings.Repeat("some text ", size/10) + `"}`),
		"kv":   []byte(`{"result": {"rows": [` + strings.Repeat(`{"a": 1, "b": [true, "x"]}, `, size/28) + `{}]}}`),
	}
}

// BenchmarkALargeAnswer is what the memory costs that one answer of 60 MiB takes.
func BenchmarkALargeAnswer(b *testing.B) {
	for kind, answer := range largeAnswers(60 << 20) {
		for name, length := range map[string]bool{"with a length": true, "in chunks": false} {
			b.Run(kind+" "+name, func(b *testing.B) {
				p := answering(b, kind, answer, length)
				b.ReportAllocs()
				b.SetBytes(int64(len(answer)))
				for b.Loop() {
					a := p.Do(b.Context(), toolproc.Call{Run: "r"})
					require.Nil(b, a.Error)
				}
			})
		}
	}
}

// TestALargeAnswerIsHeldOnce: what one answer takes of the memory is near to its size.
// It is not parallel, so that nothing else is counted.
func TestALargeAnswerIsHeldOnce(t *testing.T) {
	for kind, answer := range largeAnswers(8 << 20) {
		p := answering(t, kind, answer, true)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := p.Do(t.Context(), toolproc.Call{Run: "r"})
		runtime.ReadMemStats(&after)
		require.Nil(t, a.Error)
		require.Greater(t, len(a.Outputs), len(answer)*8/10, kind) // the blanks are gone
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(answer))*11/10, kind)
	}
}
