package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/bench/fake"
	system "github.com/coppice-run/coppice/internal/machine"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// shutdownWait bounds the end of a host with thousands of sessions.
const shutdownWait = 2 * time.Minute

// atOnce is how many sessions are started or closed at the same time outside of
// what is measured.
const atOnce = 16

// host is what scenarios drive.
type host interface {
	session(name string) session
	Snapshot(ctx context.Context) (messages.Node, error)
	Shutdown(ctx context.Context) messages.ShutdownReport
	// check returns what the host itself saw go wrong.
	check() error
}

// session is one key of a host.
type session interface {
	Execute(ctx context.Context, code string) (messages.Result, error)
	Reset(ctx context.Context) error
	Close(ctx context.Context) error
}

// real is a host of package coppice.
type real struct{ *coppice.Host }

func (h real) session(name string) session {
	return realSession{h.Host.Session(name)}
}

func (real) check() error { return nil }

type realSession struct{ *coppice.Session }

// Execute runs one cell.
func (s realSession) Execute(ctx context.Context, code string) (messages.Result, error) {
	return s.Session.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}})
}

// pretended is a host of package fake.
type pretended struct{ *fake.Host }

func (h pretended) session(name string) session { return h.Host.Session(name) }

func (h pretended) check() error { return h.Check() }

// backend is the one of the round, on the server that the round was given.
func (r *round) backend(g coppice.GatewayOptions, o coppice.RunnerOptions) coppice.Backend {
	g.URL, g.Token = r.GatewayURL, r.GatewayToken
	return backends.With(r.Backend, g, o)
}

// start makes a host that ends with the round.
func (r *round) start(ctx context.Context, o coppice.Options) (host, error) {
	var h host
	if r.Backend == Fake {
		f, err := fake.Start(ctx, fake.Options{MaxSessions: o.MaxSessions, OnEvent: o.OnEvent})
		if err != nil {
			return nil, err
		}
		h = pretended{f}
	} else {
		o.Python, o.Home = r.Python, r.Home
		if o.Backend == nil { // figures are of the sessions alone
			o.Backend = r.backend(coppice.GatewayOptions{WarmKernels: -1}, coppice.RunnerOptions{})
		}
		if o.IdleTTL == 0 {
			o.IdleTTL = -1
		}
		o.StartTimeout = 5 * time.Minute
		c, err := coppice.Start(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("start a host: %w", err)
		}
		h = real{c}
	}
	if r.Plant > 0 {
		h = planted{h, r.Plant}
	}
	r.hosts = append(r.hosts, h)
	return h, nil
}

// end shuts all hosts down.
func (r *round) end() error {
	var errs []error
	for _, h := range r.hosts {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
		r.tell("shutting down")
		if report := h.Shutdown(ctx); !report.Clean() {
			errs = append(errs, fmt.Errorf("the shutdown left %d actors or processes", len(report.Leftovers)))
		}
		cancel()
		errs = append(errs, h.check())
	}
	r.hosts = nil
	return errors.Join(errs...)
}

// planted slows calls down.
type planted struct {
	host
	share float64
}

func (h planted) session(name string) session { return plantedSession{h.host.session(name), h.share} }

type plantedSession struct {
	session
	share float64
}

// Execute takes longer than it should, by waiting and not by working, so that
// other calls are not slowed down too.
func (s plantedSession) Execute(ctx context.Context, code string) (messages.Result, error) {
	begin := time.Now()
	r, err := s.session.Execute(ctx, code)
	end := time.Now().Add(time.Duration(float64(time.Since(begin)) * s.share))
	if d := time.Until(end); d > 2*time.Millisecond {
		if e := pause(ctx, d-time.Millisecond); e != nil {
			return r, errors.Join(err, e)
		}
	}
	for time.Now().Before(end) { // a timer alone is late by up to a millisecond
	}
	return r, err
}

// one makes a call that must print or return text.
func one(ctx context.Context, s session, code, text string) error {
	r, err := s.Execute(ctx, code)
	switch {
	case err != nil:
		return err
	case r.Outcome != messages.OutcomeOK:
		return fmt.Errorf("the outcome is %s: %s", r.Outcome, head(r.Text))
	case len(r.Cells) != 1 || strings.TrimSpace(r.Cells[0].Output) != text:
		return fmt.Errorf("the text is %q, not %q", head(r.Text), text)
	}
	return nil
}

func head(text string) string {
	if len(text) > 300 {
		return text[:300] + "..."
	}
	return text
}

// sum is the cell of most calls.
const sum = "1+1"

// errMemory ends a start of sessions before the system ends something for memory.
var errMemory = errors.New("the memory of this machine is used up")

const (
	// spareMemory is what has to be left of it, looked at before each sixteenth session.
	spareMemory = 192 << 20
	memoryLooks = 16
)

// live starts n sessions, each of which has answered once.
func (r *round) live(ctx context.Context, h host, n int) ([]session, error) {
	sessions := make([]session, n)
	for i := range sessions {
		sessions[i] = h.session(fmt.Sprint("live-", i))
	}
	done := r.counter("starting sessions", n)
	var begun, there atomic.Int64
	err := each(ctx, sessions, func(s session) error {
		defer done()
		if begun.Add(1)%memoryLooks == 0 {
			if all, left := system.Memory(); all > 0 && left < spareMemory {
				return errMemory
			}
		}
		err := one(ctx, s, sum, "2")
		if err == nil {
			there.Add(1)
		}
		return err
	})
	r.started = int(there.Load())
	if errors.Is(err, errMemory) {
		err = fmt.Errorf("start %d sessions: %w by %d of them", n, errMemory, r.started)
	}
	return sessions, err
}

// each calls f for all sessions, some at a time, up to the first error, which it returns.
func each(ctx context.Context, sessions []session, f func(session) error) error {
	places := make(chan struct{}, atOnce)
	var calls sync.WaitGroup
	var mu sync.Mutex
	var first error
	for _, s := range sessions {
		mu.Lock()
		failed := first != nil
		mu.Unlock()
		if ctx.Err() != nil || failed {
			break
		}
		places <- struct{}{}
		calls.Go(func() {
			defer func() { <-places }()
			if err := f(s); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = err
				}
			}
		})
	}
	calls.Wait()
	if first == nil && ctx.Err() != nil {
		first = context.Cause(ctx)
	}
	return first
}

// temp makes a folder that is removed by the func it returns.
func temp() (string, func() error, error) {
	dir, err := os.MkdirTemp("", "coppice-bench-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the benchmark: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}
