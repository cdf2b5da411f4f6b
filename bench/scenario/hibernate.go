package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/bench/load"
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
		dir, err := os.MkdirTemp("", "coppice-bench-")
		if err != nil {
			return fmt.Errorf("make a store: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		kept, err := store.OpenFolder(ctx, store.FolderOptions{Dir: dir, KeyFile: filepath.Join(dir, "key")})
		if err != nil {
			return fmt.Errorf("make a store: %w", err)
		}
		h, err := r.start(ctx, coppice.Options{MaxSessions: 8, Hibernate: hibernate.Lossless, Store: kept})
		if err != nil {
			return err
		}
		for _, size := range []struct{ name, code, probe, want string }{
			{"small", "for i in range(10): globals()[f'v{i}'] = [i] * 10", "v9[9]", "9"},
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
