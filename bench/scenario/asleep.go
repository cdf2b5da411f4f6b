package scenario

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/test/backends"
)

// largeMiB is what the session with much in memory holds.
const largeMiB = 100

var asleep = Scenario{
	Name: "hibernate", About: "a session to disk, and its next call: with ten small variables, and with 100 MiB",
	Backends: []string{backends.Runner},
	Defaults: map[string]Defaults{backends.Runner: {Sessions: 20}},
	run: func(ctx context.Context, r *round) error {
		kept, dir, err := folder(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		h, err := r.start(ctx, coppice.Options{MaxSessions: 8, Hibernate: hibernate.Lossless, Store: kept})
		if err != nil {
			return err
		}
		for n := range 2 { // the second one has the fork server warm
			if err := one(ctx, h.session(fmt.Sprint("warm ", n)), "1+1", "2"); err != nil {
				return err
			}
		}
		for _, size := range []struct{ name, code, probe, want string }{
			{"small", fewVariables, "v9[9]", "9"},
			{"large", fmt.Sprintf("import os\nlarge = [bytearray(os.urandom(1 << 20)) for _ in range(%d)]", largeMiB), "len(large)", strconv.Itoa(largeMiB)},
		} {
			if err := r.sleepAndWake(ctx, h.session(size.name), size.name, size.code, size.probe, size.want); err != nil {
				return err
			}
		}
		return nil
	},
}

// sleepAndWake has a session go to disk and come back, again and again.
func (r *round) sleepAndWake(ctx context.Context, s session, name, code, probe, want string) error {
	if err := one(ctx, s, code+"\n"+probe, want); err != nil {
		return err
	}
	sleep, wake := load.NewRecorder(), load.NewRecorder()
	done := r.counter(name+" sessions to disk and back", r.Sessions)
	var kept int64
	for range r.Sessions {
		begin := time.Now()
		report, err := coppiceSession(s).Hibernate(ctx)
		took := time.Since(begin)
		if err != nil {
			return fmt.Errorf("hibernate a session: %w", err)
		}
		kept = report.Bytes
		sleep.Record(took + time.Duration(float64(took)*r.Plant))
		begin = time.Now()
		result, err := s.Execute(ctx, probe)
		took = time.Since(begin)
		if err != nil || result.State != messages.StateRestored {
			return fmt.Errorf("restore a session: %s, %s: %w", result.State, head(result.Text), err)
		}
		wake.Record(took + time.Duration(float64(took)*r.Plant))
		done()
	}
	r.quantiles(name+"-to-disk", sleep.Summary())
	r.quantiles(name+"-restored", wake.Summary())
	r.tell("%s: %d KiB on disk", name, kept>>10)
	return nil
}

// fewVariables is what a session that goes to disk has: ten small variables.
const fewVariables = "for i in range(10): globals()[f'v{i}'] = [i] * 10"

// wakeups is how many sessions that are on disk are called, one after the other.
const wakeups = 200

var sleepers = Scenario{
	Name: "sleepers", About: "so many sessions with ten small variables of which one in a hundred may live, so that the others are on disk: the first call of one that sleeps, for which another one goes to disk, and what all of them take",
	Backends: []string{backends.Runner},
	Defaults: map[string]Defaults{backends.Runner: {Sessions: 1000}},
	run: func(ctx context.Context, r *round) error {
		kept, dir, err := folder(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		before := ownMemory()
		places := max(r.Sessions/100, 2)
		h, err := r.start(ctx, coppice.Options{MaxSessions: places, Hibernate: hibernate.Lossless, Store: kept})
		if err != nil {
			return err
		}
		name := func(i int) string { return fmt.Sprint("sleeper ", i) }
		begin, done := time.Now(), r.counter("sessions", r.Sessions)
		for i := range r.Sessions {
			if err := one(ctx, h.session(name(i)), fewVariables+"\nv9[9]", "9"); err != nil {
				return err
			}
			done()
		}
		r.metric("begin-all", "ms", float64(time.Since(begin).Milliseconds()), record.Less)
		if own := ownMemory(); own > 0 {
			r.metric("host-memory", "KiB/session", float64(own-before)/1024/float64(r.Sessions), record.Less)
		}
		records, bytes, err := sizeOf(dir)
		if err != nil {
			return err
		}
		if records < r.Sessions-places {
			return fmt.Errorf("%d of %d sessions are on disk, and %d may live", records, r.Sessions, places)
		}
		r.metric("disk", "KiB/session", float64(bytes)/1024/float64(records), record.Less)
		wake, pick := load.NewRecorder(), rand.New(rand.NewPCG(r.Seed, 9))
		order := pick.Perm(r.Sessions - places)
		order = order[:min(wakeups, len(order))]
		done = r.counter("sessions that wake", len(order))
		for _, i := range order { // the last ones live, and none of these comes twice
			begin := time.Now()
			result, err := h.session(name(i)).Execute(ctx, "v9[9]")
			took := time.Since(begin)
			if err != nil || result.State != messages.StateRestored {
				return fmt.Errorf("wake a session: %s, %s: %w", result.State, head(result.Text), err)
			}
			wake.Record(took + time.Duration(float64(took)*r.Plant))
			done()
		}
		r.quantiles("first-call", wake.Summary())
		return nil
	},
}

// folder makes a store.
func folder(ctx context.Context) (*store.Folder, string, error) {
	dir, err := os.MkdirTemp("", "coppice-bench-")
	if err != nil {
		return nil, "", fmt.Errorf("make a store: %w", err)
	}
	kept, err := store.OpenFolder(ctx, store.FolderOptions{Dir: dir, KeyFile: filepath.Join(dir, "key")})
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, "", fmt.Errorf("make a store: %w", err)
	}
	return kept, dir, nil
}

// sizeOf is how many records a store has, and how much room all of it takes on disk.
func sizeOf(dir string) (records int, bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if rel, _ := filepath.Rel(dir, path); filepath.Dir(filepath.Dir(rel)) == "records" {
			records++
		}
		bytes += onDisk(path)
		return nil
	})
	return records, bytes, err
}
