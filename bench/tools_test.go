//go:build linux

package bench_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// launch makes a launcher over the sample tools, with their environments made.
func launch(b *testing.B) (*launcher.Launcher, map[string]string) {
	b.Helper()
	o := launcher.Options{Dir: filepath.Join("..", "examples", "tools"), Home: b.TempDir()}
	box, err := launcher.OpenToolbox(o)
	require.NoError(b, err)
	entries, err := box.List(b.Context())
	require.NoError(b, err)
	dirs := map[string]string{}
	for _, e := range entries {
		_, err := box.Setup(b.Context(), e.Dir, testpython.Path(b), false, nil)
		require.NoError(b, err)
		dirs[e.ID] = e.Dir
	}
	l, err := launcher.Start(b.Context(), o)
	require.NoError(b, err)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(b, l.Shutdown(ctx).Clean())
	})
	return l, dirs
}

var samples = []string{"word-count", "compound-interest"}

func call(b *testing.B, l *launcher.Launcher, id string) time.Duration {
	b.Helper()
	begin := time.Now()
	r, err := l.Run(b.Context(), launcher.Request{Tool: id})
	took := time.Since(begin)
	if err != nil || r.Outcome != messages.OutcomeOK {
		b.Fatalf("%v %+v", err, r.Error)
	}
	return took
}

// BenchmarkToolCold is a run of a tool that has no process, to its result.
func BenchmarkToolCold(b *testing.B) {
	for _, id := range samples {
		b.Run(id, func(b *testing.B) {
			l, _ := launch(b)
			call(b, l, id) // compiles
			var times []time.Duration
			for b.Loop() {
				b.StopTimer()
				_, err := l.Stop(b.Context(), id)
				require.NoError(b, err)
				b.StartTimer()
				times = append(times, call(b, l, id))
			}
			report(b, times)
		})
	}
}

// BenchmarkToolWarm is a run of a tool whose process waits for it.
func BenchmarkToolWarm(b *testing.B) {
	for _, id := range samples {
		b.Run(id, func(b *testing.B) {
			l, _ := launch(b)
			call(b, l, id)
			var times []time.Duration
			for b.Loop() {
				times = append(times, call(b, l, id))
			}
			report(b, times)
		})
	}
}

// once are programs that do what a run of each sample does, without a server.
var once = map[string]string{
	"word-count": `
import json, sys
sys.argv = ["main.py"]
import main
json.dump(main.run({"text": "the quick brown fox jumps over the lazy dog", "top": 3}), sys.stdout)
`,
	"compound-interest": `
import asyncio, json, sys
sys.argv = ["main.py"]
import main

async def run():
    main.runs["once"] = (main.Inputs(), asyncio.Event())
    return [event async for event in main.grow("once")]

json.dump(asyncio.run(run()), sys.stdout)
`,
}

// BenchmarkToolExec is the bare alternative: a process for each run, which
// imports the program of the tool, runs it once and ends.
func BenchmarkToolExec(b *testing.B) {
	for _, id := range samples {
		b.Run(id, func(b *testing.B) {
			_, dirs := launch(b)
			python := filepath.Join(dirs[id], ".venv", "bin", "python")
			var times []time.Duration
			for b.Loop() {
				begin := time.Now()
				cmd := exec.CommandContext(b.Context(), python, "-c", once[id])
				cmd.Dir = dirs[id]
				out, err := cmd.Output()
				times = append(times, time.Since(begin))
				if err != nil || !json.Valid(out) {
					b.Fatalf("%v %s", err, out)
				}
			}
			report(b, times)
		})
	}
}
