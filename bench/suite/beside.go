package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/bench/peers"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// besideRow is one comparison with a floor, in turns.
type besideRow struct {
	backend        string
	calls, creates int
	rounds         int
	expect         time.Duration // of a round
}

func (o options) besideRows() []besideRow {
	if o.Full {
		return []besideRow{{backends.Runner, 5000, 20, peerRounds, 5 * time.Second}, {backends.Gateway, 400, 8, peerRounds, 25 * time.Second}}
	}
	return []besideRow{{backends.Runner, 1000, 3, 2, 2 * time.Second}, {backends.Gateway, 150, 2, 1, 12 * time.Second}}
}

// beside is one round of such a comparison.
func (o options) beside(w besideRow, root string, round int) step {
	return step{"beside/" + w.backend + "/1", round + 1, w.expect, func(ctx context.Context, _ func(string)) (record.Result, error) {
		return besideFloor(ctx, w.backend, peers.Options{Python: o.python, Root: root, Calls: w.calls, Creates: w.creates})
	}}
}

// besideFloor runs a host next to the floor of its backend.
func besideFloor(ctx context.Context, backend string, p peers.Options) (_ record.Result, err error) {
	home, err := os.MkdirTemp("", "coppice-bench-")
	if err != nil {
		return record.Result{}, fmt.Errorf("make a folder for the host: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	h, err := coppice.Start(ctx, coppice.Options{Backend: backends.Named(backend), Python: p.Python, Home: home, MaxSessions: 4, IdleTTL: -1})
	if err != nil {
		return record.Result{}, fmt.Errorf("start a host: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if report := h.Shutdown(ctx); !report.Clean() {
			err = errors.Join(err, fmt.Errorf("the host did not end cleanly: %+v", report))
		}
	}()
	n := 0
	return peers.Beside(ctx, backend, p, func(ctx context.Context) (peers.Opened, error) {
		n++
		s := h.Session(fmt.Sprint(n), coppice.In(home))
		return peers.Opened{
			Call: func() error {
				r, err := s.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: "1+1"}}})
				if err == nil && (r.Outcome != messages.OutcomeOK || r.Text != "2") {
					err = fmt.Errorf("the call ended as %s with %q", r.Outcome, r.Text)
				}
				return err
			},
			Close: func() error { return s.Close(ctx) },
		}, nil
	})
}
