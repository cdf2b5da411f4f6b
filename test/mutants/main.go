// Command mutants changes the code of a package in each place that gremlins has found, one at
// a time, and runs the package's tests. A change that no test notices has a line in the table
// of explained ones, with the reason why nobody can notice it, or it is a test that is missing.
//
//	go run ./test/mutants -package supervisor/strategy found.json
//
// It exits with 1 when a change lives that is not explained. "make mutants" runs all of it.
//
// The changes are put into one program, each to be switched on by its number, where Go can say
// that; the others are built one by one. Tests fail a change when one of them fails, or when none
// ends any more for -patience: what goes wrong in a supervisor waits for ever. However long all of
// them take together decides nothing, and the patience is at least ten times what the slowest of
// them takes here without a change. Those that take long come after the others, and nothing is run
// after a failure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// errLive says that a change lives which is not explained.
var errLive = errors.New("tests are missing: write one that fails with the change, or say in test/mutants/explained.go why none can")

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	tree := flags.String("tree", ".", "the repository, as it was when gremlins read it")
	dir := flags.String("package", "", "the folder that is changed, with slashes")
	only := flags.String("at", "", "only changes that this regular expression finds in file:line:column KIND")
	tests := flags.String("run", "", "only the tests that match, as for go test: for who writes one")
	patience := flags.Duration("patience", 20*time.Second, "the tests are hung when none of them ends for so long, or for longer where they are slow")
	workers := flags.Int("workers", 1+runtime.NumCPU(), "changes that are tried at a time: what hangs needs no processor")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	if flags.NArg() != 1 || *dir == "" {
		return errors.New("name the package and what gremlins has found in it")
	}
	at, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("read -at: %w", err)
	}
	text, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("read what gremlins has found: %w", err)
	}
	top, err := filepath.Abs(*tree)
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	found, err := changes(text, top, *dir)
	if err != nil {
		return err
	}
	todo := found[:0]
	for _, c := range found {
		if at.MatchString(c.String()) {
			todo = append(todo, c)
		}
	}
	if len(todo) == 0 {
		return fmt.Errorf("there is no change to be tried in %s", *dir)
	}
	return tryAll(ctx, bench{tree: top, pkg: *dir, tests: *tests, patience: *patience}, todo, max(*workers, 1), out, progress)
}

// tried is a change with what became of it.
type tried struct {
	change
	fate fate
	err  error
}

// tryAll tries all changes, and prints those that live.
func tryAll(ctx context.Context, b bench, todo []change, workers int, out, progress io.Writer) (err error) {
	b.temp, err = os.MkdirTemp("", "mutants-")
	if err != nil {
		return fmt.Errorf("make a folder for the tests: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.temp)) }()
	if said, err := b.prepare(ctx, todo); err != nil {
		if ctx.Err() != nil {
			return err
		}
		fmt.Fprintf(progress, "each change is built by itself: %v\n%s", err, said)
	}
	if f, said, err := b.try(ctx, nil); err != nil || f != lives {
		return errors.Join(fmt.Errorf("the tests of %s do not pass without a change:\n%s", b.pkg, said), err)
	}
	if b.quiet == 0 {
		return fmt.Errorf("no test of %s matches %q: it would notice nothing", b.pkg, b.tests)
	}
	b.patience, b.slow = max(b.patience, 10*b.quiet), b.long
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	benches := make([]bench, workers)
	for i := range benches {
		benches[i] = b
		benches[i].temp = filepath.Join(b.temp, fmt.Sprint(i))
		if err := os.Mkdir(benches[i].temp, 0o700); err != nil {
			return fmt.Errorf("make a folder for the tests: %w", err)
		}
	}
	next, results := make(chan change), make(chan tried)
	var all sync.WaitGroup
	for _, mine := range benches {
		all.Go(func() { // ends with next
			for c := range next {
				f, _, err := mine.try(ctx, &c)
				results <- tried{c, f, err}
			}
		})
	}
	go func() { // ends with todo, or with ctx
		for _, c := range todo {
			if ctx.Err() == nil {
				next <- c
			}
		}
		close(next)
		all.Wait()
		close(results)
	}()
	count := map[fate]int{}
	reasons := 0
	var failed error
	begin, shown := time.Now(), time.Now()
	for r := range results {
		if r.err != nil {
			failed = errors.Join(failed, r.err)
			stop()
			continue
		}
		count[r.fate]++
		if r.fate == lives {
			reason := explain(r.change)
			if reason != "" {
				reasons++
				fmt.Fprintf(out, "%v: %s\n", r.change, reason)
			} else {
				fmt.Fprintf(out, "%v lives: %s\n", r.change, strings.TrimSpace(r.source))
			}
		}
		done := count[noticed] + count[hung] + count[lives] + count[unviable]
		if now := time.Now(); now.Sub(shown) >= 30*time.Second {
			shown = now
			left := now.Sub(begin) / time.Duration(done) * time.Duration(len(todo)-done)
			fmt.Fprintf(progress, "%d of %d changes in %s, about %v to go\n", done, len(todo), b.pkg, left.Round(time.Second))
		}
	}
	if failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		return fmt.Errorf("try changes: %w", context.Cause(ctx))
	}
	viable := len(todo) - count[unviable]
	score := 0.0
	if viable > 0 {
		score = 100 * float64(viable-count[lives]) / float64(viable)
	}
	live := count[lives] - reasons
	fmt.Fprintf(out, "%s: %d changes tried, %d noticed (%.1f %%), %d of them as no test ended any more; %d explained, %d live; %d more do not compile; %d of them in one program\n",
		b.pkg, viable, viable-count[lives], score, count[hung], reasons, live, count[unviable], len(b.in))
	if live > 0 {
		return errLive
	}
	return nil
}
