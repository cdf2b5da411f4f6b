// Command suite runs the benchmarks, compares two runs, and writes the report.
//
//	go run ./bench/suite -out bench/results/new.json            minutes
//	go run ./bench/suite -full -out bench/results/new.json      up to an hour
//	go run ./bench/suite -only exec -rounds 10 -out exec.json   some scenarios
//	go run ./bench/suite -only exec/runner/1000 -rounds 1 -profile DIR -out x.json   with profiles
//	go run ./bench/suite -compare old.json new.json             exit code 1: worse
//	go run ./bench/suite -report bench/report/latest new.json   Markdown and SVG
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/bench/report"
)

// Exit codes.
const (
	exitOK = iota
	exitWorse
	exitUsage
	exitFailed
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main, with its surroundings.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.full, "full", false, "run everything, for up to an hour")
	flags.StringVar(&o.out, "out", "", "the file for the results")
	flags.StringVar(&o.only, "only", "", "run the scenarios whose name (scenario/backend/sessions) contains one of these words, separated by commas")
	flags.IntVar(&o.rounds, "rounds", 0, "how often scenarios that are compared are repeated (default 12)")
	flags.Float64Var(&o.plant, "plant", 0, "slow every call down by this share, to see whether a comparison finds it")
	flags.StringVar(&o.python, "python", os.Getenv("COPPICE_TEST_PYTHON"), "the interpreter, with ipykernel and jupyter_kernel_gateway (default: COPPICE_TEST_PYTHON)")
	flags.StringVar(&o.profile, "profile", "", "write profiles of each step into this folder: CPU, allocations, blocking, mutexes, and a trace of its last seconds; the figures of such a run are slower")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "makes arrival times and the order of the rounds")
	compare := flags.Bool("compare", false, "compare two files of results")
	into := flags.String("report", "", "write the report of a file of results into this folder")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
	}
	var err error
	worse := false
	switch {
	case *compare && flags.NArg() == 2:
		worse, err = compareFiles(stdout, flags.Arg(0), flags.Arg(1))
	case *into != "" && flags.NArg() == 1:
		var f record.File
		if f, err = record.Read(flags.Arg(0)); err == nil {
			err = report.Write(*into, f)
		}
	case *compare || *into != "" || flags.NArg() > 0:
		_, _ = fmt.Fprintln(stderr, "suite: -compare takes two files, -report a folder and one file, and a run takes none; see -help")
		return exitUsage
	case o.out == "":
		_, _ = fmt.Fprintln(stderr, "suite: say where the results go: -out bench/results/NAME.json")
		return exitUsage
	default:
		o.command = "go run ./bench/suite " + strings.Join(args, " ")
		err = o.measure(ctx, stderr)
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "suite: %v\n", err)
		return exitFailed
	case worse:
		return exitWorse
	}
	return exitOK
}

func compareFiles(w io.Writer, before, after string) (worse bool, err error) {
	a, err := record.Read(before)
	if err != nil {
		return false, err
	}
	b, err := record.Read(after)
	if err != nil {
		return false, err
	}
	all := report.Compare(a, b)
	if len(all) == 0 {
		return false, errors.New("the files have no scenario in common")
	}
	if err := report.WriteComparison(w, all); err != nil {
		return false, err
	}
	verdict := report.Worst(all)
	_, err = fmt.Fprintf(w, "\n%s\n", verdict)
	return verdict == report.Worse, err
}
