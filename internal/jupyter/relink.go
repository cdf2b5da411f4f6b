package jupyter

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// Pauses between attempts to reach a kernel again.
const (
	firstPause = 50 * time.Millisecond
	longPause  = 2 * time.Second
)

// relink dials a kernel whose connection broke, until it has a new one or must
// give the kernel up: then it returns nil, and the kernel is lost. why says how
// the connection ended. It is called by the kernel's own goroutine.
//
// The session id is that of the connection before, so the server hands over
// what it has buffered in the meantime. What was on its way when the connection broke
// is gone; see resync.
func (k *Kernel) relink(why *LostError) *link {
	if k.KernelSession() == "" { // it has not started yet; its Start tells
		k.lose(why)
		return nil
	}
	k.mu.Lock()
	k.away = true
	k.mu.Unlock()
	var watch opportunity.Watch
	watch.Start()
	defer watch.Stop()
	bound, refused := patience(k.client.opts.Reconnect), time.Time{}
	meter := opportunity.Begin(k.client.server(), &watch)
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		seen := meter.Measure()
		if meter.Left(bound, seen) <= 0 {
			k.lose(why)
			return nil
		}
		d := k.dialAgain(bound.Opportunity - seen.Opportunity)
		select {
		case <-k.client.ended:
			if d.err == nil {
				_ = d.tcp.Close()
			}
			k.lose(&LostError{Reason: serverGone, Err: why})
			return nil
		default:
		}
		if d.err == nil {
			l := newLink(d.ws, d.tcp)
			if l.v1() != k.v1 {
				_ = d.tcp.Close()
				k.lose(&LostError{Reason: "its server speaks another protocol since the connection broke"})
				return nil
			}
			if x := k.attach(l); x != nil {
				k.noteGap(x, 0, 0)
			}
			return l
		}
		if lost := hopeless(d.err); lost != nil {
			k.lose(lost)
			return nil
		}
		switch {
		case !errors.Is(d.err, syscall.ECONNREFUSED) || !k.client.loopback:
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		case time.Since(refused) > k.client.opts.RefusedFor:
			// Nothing listens on this machine: the server's process is gone, and
			// its kernels end with it.
			k.lose(&LostError{Reason: serverGone, Err: why})
			return nil
		default: // the verdict is near
			pause = min(pause, k.client.opts.RefusedFor/4)
		}
		again := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-again.C:
		case <-k.client.ended:
			again.Stop()
		case <-k.Done():
			again.Stop()
			return nil
		}
	}
}

// serverGone is why the kernels of a server that ended are lost.
const serverGone = "its server is gone"

// dialAgain makes one attempt at another connection, for as long as is left. It
// does not try while the server is known to be gone.
func (k *Kernel) dialAgain(left time.Duration) dialled {
	ctx, cancel := context.WithTimeout(k.life, left)
	defer cancel()
	attempted := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-k.client.ended:
			cancel()
		case <-attempted:
		}
	})
	defer watching.Wait()
	defer close(attempted)
	return k.client.dialWatched(ctx, k.id, k.session)
}

// hopeless returns why a failed handshake proves that another one fails too,
// nil when it proves nothing.
func hopeless(err error) *LostError {
	if lost, ok := errors.AsType[*LostError](err); ok {
		return lost
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return &LostError{Reason: "its server does not know it any more", Err: err}
	case errors.Is(err, ErrUnauthorized):
		return &LostError{Reason: "its server does not accept the token any more", Err: err}
	}
	return nil
}

// gone asks the server for a kernel and returns why it is lost, nil when it is
// not. A server that does not answer proves nothing.
func (c *Client) gone(ctx context.Context, id string) *LostError {
	m, err := c.Get(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return &LostError{Reason: "its server does not know it any more", Err: err}
	case err != nil:
		return nil
	}
	switch m.ExecutionState {
	case stateDead:
		return &LostError{Reason: "its process died"}
	case stateRestarting, stateAutorestarting:
		return &LostError{Reason: "its process died and the server started a new one", Replaced: true}
	}
	return nil
}

// attach makes l the kernel's link and notes what is to be done on it first. It
// returns the execution whose output may have a gap that cannot be measured: that is
// always reported.
func (k *Kernel) attach(l *link) *execution {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.link, k.away = l, false
	k.stats.Reconnects++
	if k.lost != nil {
		_ = l.tcp.Close()
		return nil
	}
	// The session of the answer tells whether this is still the same process.
	id := k.newID()
	if f, err := k.message(chanControl, typeInfoRequest, id, nil, noContent{}); err == nil {
		l.first = append(l.first, f)
	}
	k.owed.ask(id)
	k.owed.unseen += 2 * answersOfAnAsk // those of a server that makes sure of its sockets
	for _, a := range k.asks {
		l.first = append(l.first, a.frame)
	}
	x := k.exec
	if x == nil || !x.sent {
		return nil
	}
	if x.answered != nil {
		l.first = append(l.first, *x.answered)
	}
	x.breaks++
	clear(x.probes)
	k.armLocked()
	if x.numbered {
		r := &x.recovery
		clear(r.open) // the answers will not come
		r.want, r.broke, r.final, r.tries, r.quiet = true, true, false, 0, 0
		return nil
	}
	x.probeDue = true
	k.holes.clear()
	if k.numbers.prefix == "" {
		return x
	}
	return nil // the numbers of what comes next show what is missing
}

// noteGap notes in the output of x where n messages are missing: exactly so many when
// they are numbered, at most otherwise, and 0 for an unknown number. last is the number of the last
// of them, 0 where they have none. It is called by the reader.
func (k *Kernel) noteGap(x *execution, n, last int64) {
	k.mu.Lock()
	x.gaps++
	x.gapMessages += n
	g := gap{N: n, Exact: x.numbered, After: x.outputs, Broken: x.breaks > 0}
	keep := !x.abandoned && !x.over
	k.mu.Unlock()
	if keep {
		k.keep(x, newRecord(recordGap, last, "", g.encode()))
	}
}

// armLocked makes the writer look at the execution soon.
func (k *Kernel) armLocked() {
	select {
	case k.arm <- struct{}{}:
	default:
	}
}
