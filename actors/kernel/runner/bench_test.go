//go:build linux

package runner_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/messages"
)

func discard(context.Context, messages.Event) error { return nil }

// quantiles reports the median and the 99th percentile of durations.
func quantiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
}

// BenchmarkCreate: a new session to its first result; its end is outside of the
// measurement.
func BenchmarkCreate(b *testing.B) {
	for name, o := range map[string]runner.ServerOptions{"spare": {}, "fork": {Spares: -1}, "start": {NoFork: true}} {
		b.Run(name, func(b *testing.B) {
			f := startServer(o)
			backend := runner.New(runner.Options{Server: f.server})
			<-f.pids
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				i, err := backend.Start(b.Context(), kernel.StartOptions{})
				require.NoError(b, err)
				r, err := i.Execute(b.Context(), kernel.CellRequest{Code: "1+1"}, discard)
				took = append(took, time.Since(begin))
				require.NoError(b, err)
				require.True(b, r.OK)
				b.StopTimer()
				closeSession(b, i)
				b.StartTimer()
			}
			quantiles(b, took)
			require.NoError(b, f.stop())
		})
	}
}

// BenchmarkExecute: the round trip of a cell.
func BenchmarkExecute(b *testing.B) {
	for name, code := range map[string]string{"value": "1+1", "statement": "x = 1", "print": "print(1)"} {
		b.Run(name, func(b *testing.B) {
			i := session(b)
			ok(b, i, "1+1")
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				r, err := i.Execute(b.Context(), kernel.CellRequest{Code: code}, discard)
				took = append(took, time.Since(begin))
				require.NoError(b, err)
				require.True(b, r.OK)
			}
			quantiles(b, took)
		})
	}
}

// BenchmarkBare is what BenchmarkExecute is compared with: a line to a Python
// process that does the least that can be called executing it, and a line back.
func BenchmarkBare(b *testing.B) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(b, err)
	ours, theirs := os.NewFile(uintptr(pair[0]), ""), os.NewFile(uintptr(pair[1]), "")
	conn, err := net.FileConn(ours)
	require.NoError(b, err)
	require.NoError(b, ours.Close())
	name := python()
	if name == "" {
		name = "python3"
	}
	for what, work := range map[string]string{
		"echo": "s.send(l)",
		"eval": "t=ast.parse(json.loads(l)['code'],'c'); r=repr(eval(compile(ast.Expression(t.body[0].value),'c','eval'))); s.send(json.dumps({'id':1,'data':{'text/plain':r}}).encode()+b'\\n')",
	} {
		b.Run(what, func(b *testing.B) {
			cmd := exec.Command(name, "-c", "import socket,json,ast\ns=socket.socket(fileno=3)\nwhile True:\n    l=s.recv(65536)\n    if l == b'end\\n': break\n    "+work)
			cmd.ExtraFiles = []*os.File{theirs}
			require.NoError(b, cmd.Start())
			buf := make([]byte, 4096)
			line := []byte(`{"type":"execute","id":1,"code":"1+1"}` + "\n")
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				_, err := conn.Write(line)
				require.NoError(b, err)
				_, err = conn.Read(buf)
				require.NoError(b, err)
				took = append(took, time.Since(begin))
			}
			quantiles(b, took)
			_, err := io.WriteString(conn, "end\n")
			require.NoError(b, err)
			require.NoError(b, cmd.Wait())
		})
	}
	require.NoError(b, conn.Close())
	require.NoError(b, theirs.Close())
}

// BenchmarkOutput: megabytes that arrive in a second.
func BenchmarkOutput(b *testing.B) {
	for name, code := range map[string]string{
		"lines":  "for _ in range(10000): print('%s')",
		"blocks": "for _ in range(16): print('%s' * 655)",
		"fd":     "import os\nfor _ in range(16): _ = os.write(1, b'%s' * 655)",
	} {
		b.Run(name, func(b *testing.B) {
			i := session(b)
			code := fmt.Sprintf(code, strings.Repeat("0123456789", 10))
			n := 0
			for b.Loop() {
				_, err := i.Execute(b.Context(), kernel.CellRequest{Code: code}, func(_ context.Context, e messages.Event) error {
					if text, ok := e.(messages.Stream); ok {
						n += len(text.Text)
					}
					return nil
				})
				require.NoError(b, err)
			}
			b.SetBytes(int64(n / max(1, b.N)))
		})
	}
}
