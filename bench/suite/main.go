// Command suite runs the benchmarks, compares two runs, and writes the report.
//
//	go run ./bench/suite -out bench/results/new.json            minutes
//	go run ./bench/suite -full -out bench/results/new.json      up to an hour
//	go run ./bench/suite -only exec -rounds 10 -out exec.json   some scenarios
//	go run ./bench/suite -only exec/runner/1000 -rounds 1 -profile DIR -out x.json   with profiles
//	go run ./bench/suite -full -dry                             what it would run
//	go run ./bench/suite -compare old.json new.json             exit code 1: worse
//	go run ./bench/suite -compared -turn -out new.json          one round more, in turns with another build
//	go run ./bench/suite -report bench/results new.json         Markdown and SVG
//
// A run that is interrupted writes what was measured and says what is missing; the
// same command with -resume measures the rest.
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
	"runtime/debug"
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
	debug.SetTraceback("all") // a step that hangs is reported by a panic
	// The second Ctrl-C ends it at once; the sessions end by themselves then.
	unhook := context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	unhook()
	stop()
	os.Exit(code)
}

// run is main, with its surroundings.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.Full, "full", false, "run everything, for up to an hour")
	flags.BoolVar(&o.dry, "dry", false, "list the steps and how long they take, and run none")
	flags.BoolVar(&o.resume, "resume", false, "go on with the run that -out has some of, with the flags it was begun with")
	flags.StringVar(&o.out, "out", "", "the file for the results")
	flags.StringVar(&o.into, "into", "", "write the report into this folder; the report of a run that was interrupted goes beside -out")
	flags.StringVar(&o.Only, "only", "", "run the scenarios whose name (scenario/backend/sessions) contains one of these words, separated by commas")
	flags.BoolVar(&o.Compared, "compared", false, "run just what a comparison judges: what is repeated")
	flags.IntVar(&o.Rounds, "rounds", 0, "how often scenarios that are compared are repeated (default 12)")
	flags.BoolVar(&o.Turns, "turn", false, "measure one round more of the run in -out, and stop: two programs are compared best when they are measured in turns")
	flags.Float64Var(&o.Plant, "plant", 0, "slow every call down by this share, like .2, to see whether a comparison finds it")
	flags.StringVar(&o.python, "python", os.Getenv("COPPICE_TEST_PYTHON"), "the interpreter, with ipykernel and jupyter_kernel_gateway (default: COPPICE_TEST_PYTHON)")
	flags.StringVar(&o.profile, "profile", "", "write profiles of each step into this folder: CPU, allocations, blocking, mutexes, and a trace of its last seconds; the figures of such a run are slower")
	flags.StringVar(&o.extras, "extras", os.Getenv("COPPICE_BENCH_PEERS"), "the folder that `make bench-env` makes: peers from package registries (default: COPPICE_BENCH_PEERS; without it they are left out)")
	flags.Uint64Var(&o.Seed, "seed", uint64(time.Now().Unix()), "makes arrival times and the order of the rounds")
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
	case o.out == "" && !o.dry:
		_, _ = fmt.Fprintln(stderr, "suite: say where the results go: -out bench/results/NAME.json")
		return exitUsage
	default:
		o.command = "go run ./bench/suite " + strings.Join(told(args), " ")
		if o.extras != "" { // the peers' programs run in folders of their own
			o.extras, err = filepath.Abs(o.extras)
		}
		if err == nil {
			err = o.measure(ctx, stdout, stderr)
		}
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

// told is what a report says of a command: without what is only of this machine.
func told(args []string) []string {
	var list []string
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch name {
		case "python", "out", "into", "extras", "profile":
			if !joined {
				i++ // its value
			}
		default:
			list = append(list, args[i])
		}
	}
	return list
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
