package sharedgateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// search is one Acquire. It belongs to the goroutine that called it.
//
// Whoever finds a gateway that answers takes no lock at all: the lease, which is
// made before the record is read, keeps the gateway from ending itself. The lock
// is held only to change the record, never to wait for a gateway: one that is
// started is recorded before it is there, and all hosts wait for it alike, also
// when the one that started it is killed.
type search struct {
	o           Options
	fingerprint string
	place       string // the shard's name in files
	waits       Waits
	mine        *kernelserver.Shared // the last that this search started
	attempt     int
}

const (
	// attempts bounds how often a search starts a gateway: between choosing a
	// port and listening on it lies the start of Python.
	attempts = 5
	// firstLook and lastLook bound the pause between two looks at a gateway that
	// does not answer.
	firstLook = 25 * time.Millisecond
	lastLook  = 250 * time.Millisecond
	// ownWait bounds the wait for a gateway that is not recorded: one that is
	// ending is gone in an instant, one whose record was lost puts itself back
	// within seconds, of which those count in which we did not stand still.
	ownWait = 10 * time.Second
)

// errOwned says that a gateway which is not recorded serves the environment.
var errOwned = errors.New("start a kernel gateway: another one that is not recorded serves this environment")

// find returns a gateway that answers.
func (s *search) find(ctx context.Context) (Gateway, error) {
	begin := time.Now()
	defer func() { s.waits.Answer = time.Since(begin) - s.waits.Lock }()
	var stalls opportunity.Watch
	stalls.Start()
	defer stalls.Stop()
	var silent Gateway // the one that does not answer, and since when
	var since, owned *opportunity.Meter
	for pause := firstLook; ; pause = min(pause+pause/4, lastLook) {
		g, ok := s.recorded()
		if !ok {
			if err := s.gone(ctx); err != nil {
				return Gateway{}, err
			}
			err := s.launch(ctx)
			if err == nil {
				continue
			}
			if !errors.Is(err, errOwned) {
				return Gateway{}, err
			}
			if owned == nil {
				owned = opportunity.Begin(nil, &stalls)
			}
			if owned.Opportunity() > ownWait || !sleep(ctx, pause) {
				return Gateway{}, err
			}
			continue
		}
		owned = nil
		err := answers(ctx, g)
		if err == nil {
			if g.settled() {
				return g, nil
			}
			if err = s.settle(ctx, g); err == nil {
				continue // the record now names its process
			}
		}
		if silent.Dir != g.Dir {
			silent, since = g, opportunity.Begin(opportunity.Processes(g.process()), &stalls)
		}
		limit := s.o.suspicion()
		if !g.settled() {
			limit = s.o.Start // it never answered
		}
		if limit.Expired(since.Measure()) != opportunity.Open {
			if err := s.replace(ctx, g); err != nil {
				return Gateway{}, err
			}
			continue
		}
		if !sleep(ctx, pause) {
			return g, fmt.Errorf("use the shared gateway: %v does not answer: %w: %w", g, err, context.Cause(ctx))
		}
	}
}

// sleep returns false when ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// recorded returns the gateway of this shard whose process lives.
func (s *search) recorded() (Gateway, bool) {
	r, err := read(s.o.Dir)
	if err != nil {
		return Gateway{}, false // launch reads it again, and tells
	}
	i := slices.IndexFunc(r.Gateways, func(g Gateway) bool { return g.place() == s.place && g.lives(s.o.Dir) })
	if i < 0 {
		return Gateway{}, false
	}
	return r.Gateways[i], true
}

// answers returns nil when a gateway answers. One that is recorded with its
// process has answered once, and needs no proof that it has the port.
func answers(ctx context.Context, g Gateway) error {
	if g.settled() {
		return healthy(ctx, g)
	}
	return kernelserver.SharedAnswers(ctx, g.URL, g.Token, g.Dir)
}

// gone returns why the gateway that this search started is not there, nil when it
// started none or when another port may do.
func (s *search) gone(ctx context.Context) error {
	if s.mine == nil {
		return nil
	}
	mine := s.mine
	s.mine = nil
	err, again := mine.Failed(ctx, errors.New("it ended while it started"))
	if again && s.attempt < attempts {
		return nil
	}
	s.forget(ctx, mine.Dir)
	if s.o.Check != nil {
		if lacks := s.o.Check(ctx); lacks != nil {
			return lacks
		}
	}
	return err
}

// lock takes gateway.lock and counts the wait.
func (s *search) lock(ctx context.Context, doing string) (func(), error) {
	begin := time.Now()
	defer func() { s.waits.Lock += time.Since(begin) }()
	return lock(ctx, s.o.Dir, doing)
}

// launch records a gateway and starts it, unless there is one by now. It forgets
// those that have ended.
func (s *search) launch(ctx context.Context) error {
	unlock, err := s.lock(ctx, "starting a gateway")
	if err != nil {
		return err
	}
	defer unlock()
	r, err := read(s.o.Dir)
	if err != nil {
		return err
	}
	for _, g := range r.Gateways {
		if g.lives(s.o.Dir) {
			if g.place() == s.place {
				return nil
			}
			continue
		}
		kernelserver.Remove(ctx, g.Process, g.Dir)
		r = r.without(g)
	}
	own, err := own(s.o.Dir, s.place)
	if err != nil {
		return err
	}
	defer func() { _ = own.Close() }() // the gateway has its own copy
	s.attempt++
	s.waits.Launches++
	shared, err := kernelserver.NewShared(ctx, kernelserver.Options{Runtime: s.o.Runtime, MaxKernels: s.o.MaxKernels, Fork: !s.o.NoFork}, kernelserver.Sharing{
		Dir: s.o.Dir, Name: s.place, IdleEnd: s.o.IdleEnd, Keep: s.o.Keep,
	})
	if err != nil {
		return err
	}
	g := Gateway{
		URL: shared.URL, Token: shared.Token, Dir: shared.Dir, Fingerprint: s.fingerprint, Shard: s.o.Shard, MaxKernels: s.o.MaxKernels,
		Python: s.o.Runtime.Path, Started: time.Now().UTC(),
	}
	before := r.Gateways
	r.Gateways = append(slices.Clone(before), g)
	if err = write(s.o.Dir, r); err == nil {
		err = shared.Start(own)
	}
	if err != nil {
		kernelserver.Remove(ctx, g.Process, g.Dir)
		return errors.Join(err, write(s.o.Dir, record{Gateways: before}))
	}
	s.mine = shared
	return nil
}

// settle writes the process of a gateway that answers for the first time.
func (s *search) settle(ctx context.Context, g Gateway) error {
	unlock, err := s.lock(ctx, "noting that a gateway has started")
	if err != nil {
		return err
	}
	defer unlock()
	r, err := read(s.o.Dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(r.Gateways, func(other Gateway) bool { return other.Dir == g.Dir })
	if i < 0 || r.Gateways[i].settled() {
		return nil
	}
	id, ok := kernelserver.SharedProcess(g.Dir)
	if !ok {
		return errors.New("it has not reported its process")
	}
	r.Gateways[i].Process = id
	if err := kernelserver.Settle(id, g.Dir); err != nil {
		return err
	}
	return write(s.o.Dir, r)
}

// replace ends a gateway that was silent for too long, unless it answers now or
// another host was first.
func (s *search) replace(ctx context.Context, g Gateway) error {
	if s.mine != nil && s.mine.Dir == g.Dir {
		err, _ := s.mine.Failed(ctx, errors.New("it gave no answer in time"))
		s.giveUp(ctx)
		return err
	}
	return replace(ctx, s.o.Dir, g)
}

// giveUp ends what this search started, if it does not answer and no one else waits
// for it.
func (s *search) giveUp(ctx context.Context) {
	if s.mine == nil {
		return
	}
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpWait)
	defer cancel()
	mine := s.mine
	s.mine = nil
	mine.Join(c)
	if hosts(s.o.Dir, s.place) > 1 {
		return
	}
	s.forget(c, mine.Dir)
}

// forget ends a gateway that does not answer and takes it out of the record. It
// is an attempt: the next launch does the same.
func (s *search) forget(ctx context.Context, private string) {
	r, err := read(s.o.Dir)
	if err != nil {
		return
	}
	for _, g := range r.Gateways {
		if g.Dir == private {
			_ = replace(ctx, s.o.Dir, g)
		}
	}
}

const giveUpWait = 6 * time.Second

// join waits for the helper process of a start, which has done its work.
func (s *search) join(ctx context.Context) {
	if s.mine != nil {
		s.mine.Join(ctx)
	}
}

// replace ends a gateway and forgets it, unless it answers now or it is no longer
// the one that is recorded.
func replace(ctx context.Context, dir string, g Gateway) error {
	unlock, err := lock(ctx, dir, "replacing a gateway that does not answer")
	if err != nil {
		return err
	}
	defer unlock()
	r, err := read(dir)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(r.Gateways, func(other Gateway) bool { return other.Dir == g.Dir && other.Process == g.Process }) {
		return nil
	}
	if g.lives(dir) && answers(ctx, g) == nil {
		return nil
	}
	id := g.Process
	if told, ok := kernelserver.SharedProcess(g.Dir); ok && !g.settled() && g.lives(dir) {
		id = told
	}
	kernelserver.Remove(ctx, id, g.Dir)
	return write(dir, r.without(g))
}

// process is the gateway's, as far as it is known: one that starts tells it late.
func (g Gateway) process() process.Identity {
	if g.settled() {
		return g.Process
	}
	id, _ := kernelserver.SharedProcess(g.Dir)
	return id
}

// settled says whether the gateway has answered once, so that its process is
// known.
func (g Gateway) settled() bool { return g.Process != process.Identity{} }

// lives says whether the gateway's process is there. Before that is known, its
// hold on its shard shows it.
func (g Gateway) lives(dir string) bool {
	if g.settled() {
		return !process.Ended(g.Process)
	}
	return held(ownPath(dir, g.place()))
}
