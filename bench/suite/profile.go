package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strings"

	"github.com/coppice-run/coppice/bench/record"
)

// How much is sampled while profiles are taken: what costs some percent.
const (
	allocBytes = 16 << 10 // one allocation in so many bytes
	blockTime  = 1000     // ns
	mutexShare = 10       // one contention in so many
	traceBytes = 32 << 20 // the last seconds of a step
)

// profiled runs a step and leaves profiles of it in dir, which is made: STEP.cpu,
// .allocs, .block and .mutex for `go tool pprof`, and .trace, its last seconds, for
// `go tool trace`. Those of allocations, blocking and mutexes are counted from the
// start of this process, so one step in a run is best. No dir: it only runs it.
func profiled(ctx context.Context, dir string, s step, tell func(string)) (_ record.Result, err error) {
	if dir == "" {
		return s.run(ctx, tell)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return record.Result{}, fmt.Errorf("make a folder for profiles: %w", err)
	}
	base := filepath.Join(dir, fmt.Sprintf("%s.%d", strings.ReplaceAll(s.name, "/", "-"), s.round))
	file := func(kind string, write func(*os.File) error) {
		f, e := os.OpenFile(base+"."+kind, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if e == nil {
			e = errors.Join(write(f), f.Close())
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("write a profile: %w", e))
		}
	}
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = allocBytes
	runtime.SetBlockProfileRate(blockTime)
	share := runtime.SetMutexProfileFraction(mutexShare)
	defer func() {
		runtime.MemProfileRate = rate
		runtime.SetBlockProfileRate(0)
		runtime.SetMutexProfileFraction(share)
	}()
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{MaxBytes: traceBytes})
	if err := recorder.Start(); err != nil {
		return record.Result{}, fmt.Errorf("trace: %w", err)
	}
	defer recorder.Stop()
	var r record.Result
	file("cpu", func(f *os.File) error {
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		var err error
		r, err = s.run(ctx, tell)
		return err
	})
	file("trace", func(f *os.File) error { _, err := recorder.WriteTo(f); return err })
	for _, kind := range []string{"allocs", "block", "mutex"} {
		file(kind, func(f *os.File) error { return pprof.Lookup(kind).WriteTo(f, 0) })
	}
	return r, err
}
