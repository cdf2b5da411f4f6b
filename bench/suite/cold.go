package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/test/backends"
)

// coldRow is how often the command is started in a round, and how often there is one.
type coldRow struct {
	starts, rounds int
	expect         time.Duration // of a round, but for the build
}

func (o options) coldRow() coldRow {
	if o.Full {
		return coldRow{40, peerRounds, 15 * time.Second}
	}
	return coldRow{15, 2, 8 * time.Second}
}

// cold is one round of whole commands.
func (o options) cold(w coldRow, root string, round int) step {
	return step{"cold/" + backends.Runner + "/1", round + 1, w.expect, func(ctx context.Context, tell func(string)) (record.Result, error) {
		r := record.Result{Scenario: "cold", Backend: backends.Runner, Sessions: 1, Round: 1, At: time.Now(), LoadBefore: record.Load(), Curves: map[string]load.Summary{}}
		err := coldCommands(ctx, &r, o.python, root, w.starts, tell)
		r.Took, r.LoadAfter = time.Since(r.At), record.Load()
		if err != nil {
			err = fmt.Errorf("cold: %w", err)
			r.Error = err.Error()
		}
		return r, err
	}}
}

// coldCommands starts whole programs in turns, each from nothing to its end: the command
// with one cell, the command with nothing to do, and the bare interpreter. What a start
// leaves for the next is made by the first, which is told apart.
func coldCommands(ctx context.Context, r *record.Result, python, root string, starts int, tell func(string)) (err error) {
	dir, err := os.MkdirTemp("", "coppice-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the command: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	command := filepath.Join(dir, "coppice")
	if runtime.GOOS == "windows" {
		command += ".exe"
	}
	tell("building the command")
	build := exec.CommandContext(ctx, "go", "build", "-o", command, "./cmd/coppice")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the command: %w: %s", err, out)
	}
	programs := []struct {
		name string
		args []string
		want string // that it prints
		rec  *load.Recorder
	}{
		{"", []string{command, "run", "--backend", backends.Runner, "--python", python, "-c", "1+1"}, "\n2\n", load.NewRecorder()},
		{"nothing", []string{command, "version"}, "coppice ", load.NewRecorder()},
		{"python", []string{python, "-c", "print(1+1)"}, "2\n", load.NewRecorder()},
	}
	for n := range starts + 1 {
		for turn := range programs {
			p := programs[(n+turn)%len(programs)]
			c := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
			c.Dir, c.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
			begin := time.Now()
			out, err := c.CombinedOutput()
			took := time.Since(begin)
			switch {
			case err != nil:
				return fmt.Errorf("run %s: %w: %s", strings.Join(p.args, " "), err, out)
			case !strings.Contains(string(out), p.want):
				return fmt.Errorf("%s printed %q", strings.Join(p.args, " "), out)
			case n > 0:
				p.rec.Record(took)
			case p.name == "":
				r.Metrics = append(r.Metrics, record.Metric{Name: "first", Unit: "us", Value: float64(took.Microseconds()), Better: record.None})
			}
		}
		tell(fmt.Sprintf("commands: %d of %d", n, starts))
	}
	for _, p := range programs {
		s, prefix, better := p.rec.Summary(), "", record.Less
		if p.name != "" {
			prefix, better = p.name+"-", record.None
		}
		r.Curves[prefix+"latency"] = s
		r.Metrics = append(r.Metrics,
			record.Metric{Name: prefix + "p50", Unit: "us", Value: float64(s.P50) / 1e3, Better: better},
			record.Metric{Name: prefix + "p99", Unit: "us", Value: float64(s.P99) / 1e3, Better: record.None})
	}
	return nil
}
