package peers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
)

// Opened is one live session of a floor, or of what stands beside it.
type Opened struct {
	// Call runs 1+1 and checks the answer.
	Call func() error
	// Close ends the session and returns when it is gone.
	Close func() error
}

// Opener makes a session; its time, and that of the first Call, is what a new
// session takes.
type Opener func(context.Context) (Opened, error)

// warmCalls are made in each session before calls are measured.
const warmCalls = 20

// Beside measures the floor of a backend, the bare pipe for the runner and the
// tuned WebSocket for the gateway, and ours, in turns: one new session each, then
// one call each, who is first changing every time. What the machine does to one of
// two figures it then does to the other, which is not so for steps that are minutes
// apart. It is the scenario beside: floor-create and floor-exec are the floor's.
func Beside(ctx context.Context, backend string, o Options, ours Opener) (record.Result, error) {
	o = o.withDefaults()
	r := record.Result{Scenario: "beside", Backend: backend, Sessions: 1, Round: 1, At: time.Now(), LoadBefore: record.Load(), Curves: map[string]load.Summary{}}
	floor, own := newTimes(), newTimes()
	err := beside(ctx, backend, o, ours, floor, own)
	r.Took, r.LoadAfter = time.Since(r.At), record.Load()
	if err != nil {
		err = fmt.Errorf("beside %s: %w", backend, err)
		r.Error = err.Error()
		return r, err
	}
	for _, m := range []struct {
		name string
		from *load.Recorder
	}{{"exec", own.execute}, {"floor-exec", floor.execute}, {"create", own.create}, {"floor-create", floor.create}} {
		s := m.from.Summary()
		r.Curves[m.name] = s
		r.Metrics = append(r.Metrics,
			record.Metric{Name: m.name + "-p50", Unit: "us", Value: float64(s.P50) / 1e3, Better: record.None},
			record.Metric{Name: m.name + "-p99", Unit: "us", Value: float64(s.P99) / 1e3, Better: record.None})
	}
	return r, nil
}

func beside(ctx context.Context, backend string, o Options, ours Opener, floor, own times) (err error) {
	bare, end, err := openFloor(ctx, backend, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	sides := []struct {
		open Opener
		into times
	}{{bare, floor}, {ours, own}}
	for n := range o.Creates + 1 { // the first is for the warm-up
		for turn := range sides {
			side := sides[(n+turn)%2]
			begin := time.Now()
			s, err := side.open(ctx)
			if err != nil {
				return err
			}
			err = s.Call()
			if took := time.Since(begin); n > 0 {
				side.into.create.Record(took)
			}
			if err = errors.Join(err, s.Close()); err != nil {
				return err
			}
		}
	}
	live := make([]Opened, len(sides))
	for i, side := range sides {
		if live[i], err = side.open(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, live[i].Close()) }()
	}
	for n := range o.Calls + warmCalls {
		for turn := range sides {
			i := (n + turn) % 2
			begin := time.Now()
			if err := live[i].Call(); err != nil {
				return err
			}
			if n >= warmCalls {
				sides[i].into.execute.Record(time.Since(begin))
			}
		}
	}
	return nil
}

// openFloor prepares the floor of a backend. end is called when its sessions are
// closed.
func openFloor(ctx context.Context, backend string, o Options) (open Opener, end func() error, err error) {
	if backend == "runner" {
		return barePipeOpener(o), func() error { return nil }, nil
	}
	g, err := startGateway(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (Opened, error) {
		k, err := g.kernel(ctx, true)
		if err != nil {
			return Opened{}, err
		}
		return Opened{Call: k.call, Close: func() error {
			_, err := g.request(ctx, http.MethodDelete, "/api/kernels/"+k.id, "")
			return errors.Join(err, k.conn.Close())
		}}, nil
	}, g.end, nil
}
