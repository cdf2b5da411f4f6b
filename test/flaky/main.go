// Command flaky runs tests again and again beside a load, to find those that fail now and
// then. Each failure is named with how often it came, and what it said is kept.
//
//	go run ./test/flaky ./internal/process                    ten times, beside 5 burners for each processor
//	go run ./test/flaky -n 50 -load 20 -run 'TestX' ./pkg     one test, more often, beside more
//	go run ./test/flaky -load 0 -race ./...                   all of it, alone, with the race detector
//
// It exits with 1 when a test has failed, or when a package could not be built.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/test/starve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "flaky:", err)
		os.Exit(1)
	}
}

// errFailed says that a test has failed.
var errFailed = errors.New("tests have failed")

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("flaky", flag.ContinueOnError)
	times := flags.Int("n", 10, "how often")
	load := flags.Int("load", 5, "burners for each processor")
	only := flags.String("run", "", "the tests that match, as for go test")
	race := flags.Bool("race", false, "with the race detector")
	atOnce := flags.Int("p", 1+runtime.NumCPU(), "packages at a time: tests wait, too")
	keep := flags.String("keep", filepath.Join(os.TempDir(), "coppice-flaky"), "the folder for what failures say")
	limit := flags.Duration("timeout", 2*time.Hour, "for one run of a package, beside the load")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	packages := flags.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	packages = append([]string{"-p", strconv.Itoa(*atOnce), "-ldflags=-s -w"}, packages...) // nobody debugs what is linked
	if *race {
		packages = append([]string{"-race"}, packages...)
	}
	if err := goTest(ctx, append([]string{"test", "-count=1", "-run", "^$"}, packages...), os.Stderr); err != nil { // while there is a processor to compile with
		return err
	}
	command := append([]string{"test", "-json", "-count=1", "-timeout", limit.String(), "-run", *only}, packages...)
	burners, err := starve.Burn(*load * runtime.NumCPU())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, burners.Stop()) }()
	seen := newTally(*keep)
	for n := 1; n <= *times && ctx.Err() == nil; n++ {
		begin := time.Now()
		before := seen.failures
		read, write := io.Pipe()
		told := make(chan error, 1)
		go func() { told <- seen.read(n, read) }() // ends with write
		failed := goTest(ctx, command, write)
		_ = write.Close() // of a pipe in memory
		if err := <-told; err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
		if failed != nil && seen.failures == before {
			return fmt.Errorf("run %d: %w", n, failed)
		}
		_, _ = fmt.Fprintf(out, "run %d of %d: %d failures, %v\n", n, *times, seen.failures-before, time.Since(begin).Round(100*time.Millisecond))
	}
	seen.summary(out)
	if seen.failures > 0 {
		return errFailed
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("run tests: %w", err)
	}
	return nil
}

// goTest runs go test and writes what it says. An error is a failure of a test, too.
func goTest(ctx context.Context, args []string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // whoever runs this chose them
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %v: %w", args, err)
	}
	return nil
}
