package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/coppice-run/coppice/actors/internal/kernelserver"
	"github.com/coppice-run/coppice/actors/internal/process"
	"github.com/coppice-run/coppice/actors/internal/pyenv"
)

// Options says which gateway is wanted. Dir and Runtime are required.
type Options struct {
	// Dir is ~/.<brand>/agent/python-gateway; it is made when it is missing.
	Dir string
	// Runtime is the interpreter, which pyenv.Preflight has seen.
	Runtime pyenv.Runtime
	// StartTimeout bounds Acquire, the wait for other hosts included. 0: 30 s.
	StartTimeout time.Duration
	// Suspicion is how long a gateway may be silent, while its process lives,
	// before it is ended and replaced. 0: 60 s.
	Suspicion time.Duration
	// IdleEnd is how long a gateway that is started may be without hosts and
	// kernels before it ends itself. 0: 5 min.
	IdleEnd time.Duration
	// Keep is how long a journalled session that nobody uses is kept by a gateway
	// that is started. 0: 1 h.
	Keep time.Duration
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.StartTimeout, 30*time.Second)
	def(&o.Suspicion, time.Minute)
	def(&o.IdleEnd, 5*time.Minute)
	def(&o.Keep, time.Hour)
	return o
}

// ErrUnsupported says that this system has no shared gateways.
var ErrUnsupported = errors.New("gateways cannot be shared on this system")

// errSlow is the cause when StartTimeout has passed.
var errSlow = errors.New("it took too long")

// Lease is a host's hold on a shared gateway, until Release.
type Lease struct {
	Gateway
	o     Options
	lease *lease
}

// ID names the lease; a kernel that carries it lives no longer than the lease,
// unless a journal names the kernel.
func (l *Lease) ID() string { return filepath.Base(l.lease.path) }

// Release gives the gateway back. It ends nothing: the gateway ends by itself
// when nobody uses it.
func (l *Lease) Release() { l.lease.release() }

// Acquire finds the gateway of o.Runtime or starts it.
func Acquire(ctx context.Context, o Options) (*Lease, error) {
	if !Supported {
		return nil, ErrUnsupported
	}
	o = o.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, o.StartTimeout+o.Suspicion, errSlow)
	defer cancel()
	if err := prepare(o.Dir); err != nil {
		return nil, err
	}
	fingerprint := Fingerprint(o.Runtime)
	hold, err := newLease(o.Dir, fingerprint)
	if err != nil {
		return nil, err
	}
	g, err := find(ctx, o, fingerprint, hold)
	if err != nil {
		hold.release()
		return nil, err
	}
	return &Lease{Gateway: g, o: o, lease: hold}, nil
}

// find returns a gateway that answers. The lock is not held while one that is
// silent is given time: others may want another gateway.
func find(ctx context.Context, o Options, fingerprint string, hold *lease) (Gateway, error) {
	var since time.Time // of the silence
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		g, err := once(ctx, o, fingerprint, hold, !since.IsZero() && time.Since(since) > o.Suspicion)
		if _, silent := errors.AsType[*silentError](err); !silent {
			return g, err
		}
		if since.IsZero() {
			since = time.Now()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return g, fmt.Errorf("use the shared gateway: %w: %w", err, context.Cause(ctx))
		}
	}
}

// silentError says that a gateway whose process lives did not answer.
type silentError struct {
	g   Gateway
	err error
}

func (e *silentError) Error() string { return fmt.Sprintf("%v does not answer: %v", e.g, e.err) }
func (e *silentError) Unwrap() error { return e.err }

// once looks once, under the lock, and starts a gateway when there is none.
func once(ctx context.Context, o Options, fingerprint string, hold *lease, replace bool) (Gateway, error) {
	unlock, err := lock(ctx, o.Dir, "finding or starting a gateway")
	if err != nil {
		return Gateway{}, err
	}
	defer unlock()
	r, err := read(o.Dir)
	if err != nil {
		return Gateway{}, err
	}
	for _, g := range r.Gateways {
		switch {
		case !process.Alive(g.Process):
			kernelserver.Remove(ctx, g.Process, g.Dir)
			r = r.without(g)
		case g.Fingerprint != fingerprint:
		default:
			err := healthy(ctx, g)
			if err == nil {
				return g, nil
			}
			if !replace {
				return g, &silentError{g, err}
			}
			kernelserver.Remove(ctx, g.Process, g.Dir)
			r = r.without(g)
		}
	}
	s, err := kernelserver.LaunchShared(ctx, kernelserver.Options{Runtime: o.Runtime, StartTimeout: o.StartTimeout}, kernelserver.Sharing{
		Dir: o.Dir, Fingerprint: fingerprint, Lease: hold.path, IdleEnd: o.IdleEnd, Keep: o.Keep,
	})
	if err != nil {
		return Gateway{}, err
	}
	g := Gateway{URL: s.URL, Token: s.Token, Process: s.Process, Dir: s.Dir, Fingerprint: fingerprint, Python: o.Runtime.Path, Started: time.Now().UTC()}
	r.Gateways = append(r.Gateways, g)
	if err := write(o.Dir, r); err != nil {
		kernelserver.Remove(ctx, g.Process, g.Dir)
		return Gateway{}, err
	}
	return g, nil
}

// client makes the requests that ask whether a gateway lives: no connection is
// kept, no proxy, no redirect takes the token elsewhere.
var client = &http.Client{
	Timeout:       2 * time.Second,
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// healthy returns nil when the gateway answers. Who holds the process, the port
// and the token is the gateway; a status that is no success is an answer too,
// except that of a wrong token: then somebody else has the port.
func healthy(ctx context.Context, g Gateway) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+"/api/kernelspecs", nil)
	if err != nil {
		return fmt.Errorf("ask the gateway: %w", err)
	}
	req.Header.Set("Authorization", "token "+g.Token)
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the gateway: %w", err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return errors.New("it refuses its own token")
	}
	return nil
}
