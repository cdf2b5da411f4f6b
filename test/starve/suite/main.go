// Command suite runs chosen tests on a machine that has far too much to do: beside
// them, burners want each processor ten times over. They are those in which a deadline,
// a heartbeat or a grace decides, on each backend. At the end it says how many verdicts
// were put off, which a fixed limit would have been wrong about.
//
//	go run ./test/starve/suite            all of it, within 20 minutes
//	go run ./test/starve/suite -load 4    with less beside it
//	go run ./test/starve/suite -only cli  the steps with that in their names
//
// It exits with 1 when a test has failed, and with 1 when it took too long.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/test/starve"
)

// step is a run of go test.
type step struct {
	name, pkg, run string
	env            []string
}

// most is how long all of it may take, without the time that it takes to compile.
const most = 20 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starved:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	load := flags.Int("load", 10, "burners for each processor")
	only := flags.String("only", "", "run the steps with this in their names")
	verbose := flags.Bool("v", false, "show what passing tests say")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	var chosen []step
	for _, s := range steps {
		if strings.Contains(s.name, *only) {
			chosen = append(chosen, s)
		}
	}
	dir, err := os.MkdirTemp("", "coppice-starved-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for i := range chosen { // while there is a processor to compile with
		if err := chosen[i].compile(ctx, dir); err != nil {
			return err
		}
	}
	burners, err := starve.Burn(*load * runtime.NumCPU())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, burners.Stop()) }()
	begin := time.Now()
	var failed []string
	var all int64
	for i, s := range chosen {
		noted := filepath.Join(dir, fmt.Sprint("postponed-", i))
		begun := time.Now()
		err := s.test(ctx, dir, noted, *verbose)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, readErr := starve.Noted(noted)
		if readErr != nil {
			return readErr
		}
		all += n
		how := "ok"
		if err != nil {
			how = "FAILED"
			failed = append(failed, s.name)
		}
		fmt.Printf("%-7s %-24s %4.0f s, %d verdicts were put off, load %s\n", how, s.name, time.Since(begun).Seconds(), n, average()) //nolint:forbidigo // it is a program
	}
	took := time.Since(begin)
	fmt.Printf("%d burners on %d processors, %.0f s: %d verdicts were put off\n", *load*runtime.NumCPU(), runtime.NumCPU(), took.Seconds(), all) //nolint:forbidigo // it is a program
	switch {
	case len(failed) > 0:
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	case took > most:
		return fmt.Errorf("it took %v, and %v is the most", took.Round(time.Second), most)
	}
	return nil
}

// binary is where the tests of a package are compiled to.
func (s step) binary(dir string) string {
	return filepath.Join(dir, strings.ReplaceAll(s.pkg, "/", "-"))
}

func (s step) compile(ctx context.Context, dir string) error {
	if _, err := os.Stat(s.binary(dir)); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", s.binary(dir), "./"+s.pkg) //nolint:gosec // from the table
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compile the tests of %s: %w", s.pkg, err)
	}
	return nil
}

// test runs the step; its output is shown when it fails.
func (s step) test(ctx context.Context, dir, noted string, verbose bool) error {
	cmd := exec.CommandContext(ctx, s.binary(dir), "-test.run="+s.run, "-test.timeout=15m", "-test.v="+fmt.Sprint(verbose)) //nolint:gosec // from the table
	cmd.Dir = s.pkg
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "COPPICE_TEST_FULL=") { // the long forms have no place in this time
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, s.env...), starve.Variable+"="+noted)
	out, err := cmd.CombinedOutput()
	if err != nil || verbose {
		_, _ = os.Stdout.Write(out)
	}
	if err != nil {
		return fmt.Errorf("test %s: %w", s.name, err)
	}
	return nil
}

// average is the load of the last minute, "?" where that is not known.
func average() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
