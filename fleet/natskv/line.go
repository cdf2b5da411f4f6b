package natskv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coppice-run/coppice/fleet"
)

// A server that stands still keeps its connections, and a lease that is not renewed costs a node
// its sessions. So these are parts of a lease.
const (
	// probes is how many times in a lease a server is pinged. One answer may be missing: the
	// server is left at the next ping, within a fifth of a lease.
	probes = 10
	// mute is the part of a lease after which a server that answers pings alone is left, too. It is
	// longer than the time for an answer: while the servers elect a leader, another one knows no more.
	mute = 4
	// least is the shortest of these times: a machine with much to do is not taken for silent.
	least = 250 * time.Millisecond
)

// part is one of so many parts of a lease.
func part(lease time.Duration, of int) time.Duration {
	return max(lease/time.Duration(of), least)
}

// usual is how a connection is made unless the caller says otherwise.
func usual(lease time.Duration) []nats.Option {
	return []nats.Option{
		nats.Name("coppice fleet"),
		// A server that stands still is connected to, and says nothing.
		nats.Timeout(part(lease, probes)),
		nats.ReconnectWait(part(lease, 4*probes)),
	}
}

// own is how a connection is kept, whatever the caller says.
func own(lease time.Duration) []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1),
		// What waits in a buffer would be done when nobody counts on it any longer.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(part(lease, probes)), nats.MaxPingsOutstanding(1),
		nats.FlusherTimeout(part(lease, probes)),
	}
}

// What the client of NATS calls otherwise, in words for who reads them in an answer.
var (
	// errAway: there is no connection at the moment.
	errAway = errors.New("no server of the directory can be reached")
	// errLeaderless: the servers have not agreed yet on who decides.
	errLeaderless = errors.New("the servers of the directory have no leader at the moment")
)

// silentError says that there was no answer in the time that one may take, which is shorter than
// what whoever asked would have waited.
type silentError struct{ within time.Duration }

// Error implements error.
func (e silentError) Error() string {
	return fmt.Sprintf("the directory gave no answer within %s", e.within)
}

// Unwrap has it match what a time that is up is elsewhere.
func (e silentError) Unwrap() error { return context.DeadlineExceeded }

// line is the connection, with a bound for each request. Any goroutine may call its methods.
type line struct {
	nc    *nats.Conn
	lease time.Duration

	mu sync.Mutex
	// since is when the first request was made of those that have no answer, after the last one
	// that had; zero: there is none.
	since time.Time
}

func newLine(nc *nats.Conn, lease time.Duration) *line { return &line{nc: nc, lease: lease} }

// once makes one request, which has to be answered soon.
func (l *line) once(ctx context.Context, do func(context.Context) error) error {
	begun, within := time.Now(), fleet.AnswerTime(l.lease)
	short, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := do(short)
	switch {
	case err != nil && ctx.Err() != nil:
		return err // whoever asked has waited no longer
	case err != nil && short.Err() != nil:
		l.unheard(begun)
		return silentError{within}
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrDisconnected):
		err = fmt.Errorf("%w: %w", errAway, err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		err = fmt.Errorf("%w: %w", errLeaderless, err)
	}
	l.heard()
	return err
}

// again makes a request that may be made several times until it is answered, for half a lease at
// most.
func (l *line) again(ctx context.Context, do func(context.Context) error) error {
	for end := time.Now().Add(l.lease / 2); ; {
		err := l.once(ctx, do)
		if _, silent := errors.AsType[silentError](err); !silent || time.Now().After(end) {
			return err
		}
	}
}

// heard notes that the server says something, or that there is another connection to come.
func (l *line) heard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Time{}
}

// unheard notes a request without an answer, and leaves a server that has given none for long:
// it may be cut off from the others.
func (l *line) unheard(begun time.Time) {
	l.mu.Lock()
	if l.since.IsZero() || begun.Before(l.since) {
		l.since = begun
	}
	leave := time.Since(l.since) >= part(l.lease, mute)
	if leave {
		l.since = time.Time{}
	}
	l.mu.Unlock()
	if leave {
		_ = l.nc.ForceReconnect() // it was closed
	}
}
