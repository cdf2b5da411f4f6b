package sharedgateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/pyenv"
)

// Options says which gateway is wanted. Dir and Runtime are required.
type Options struct {
	// Dir is ~/.<brand>/agent/python-gateway; it is made when it is missing.
	Dir string
	// Runtime is the interpreter.
	Runtime pyenv.Runtime
	// Shard is the number of the gateway that is wanted among those of the
	// environment, from 0. A host uses a further one when all before it are full.
	Shard int
	// MaxKernels is how many kernels a gateway that is started takes, from all its
	// hosts together; it refuses one more. 0: [DefaultMaxKernels].
	MaxKernels int
	// NoFork spawns the kernels of a gateway that is started; by default they are
	// forked, where that can be.
	NoFork bool
	// Check says whether the interpreter can run a gateway. It is asked only when
	// one could not be started, to say why. nil: the error of the start has to do.
	Check func(context.Context) error
	// Start bounds the start of a gateway: how long it may have had the chance to
	// answer. The zero value is that of [opportunity.Starting].
	Start opportunity.Budget
	// Suspicion is how long a gateway may be silent, while its process lives and
	// could answer, before it is ended and replaced; ten times that when it gets no
	// processor. Acquire waits for no longer than that and the ceiling of Start
	// together. 0: 60 s.
	Suspicion time.Duration
	// IdleEnd is how long a gateway that is started may be without hosts and
	// kernels before it ends itself. 0: 5 min.
	IdleEnd time.Duration
	// Keep is how long a journalled session that is not used is kept by a gateway
	// that is started. 0: 1 h.
	Keep time.Duration
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if o.Start.Opportunity <= 0 {
		o.Start = opportunity.Starting(0, o.Start.Ceiling)
	}
	def(&o.Suspicion, time.Minute)
	def(&o.IdleEnd, 5*time.Minute)
	def(&o.Keep, time.Hour)
	if o.MaxKernels == 0 {
		o.MaxKernels = DefaultMaxKernels
	}
	return o
}

// ErrUnsupported says that this system has no shared gateways.
var ErrUnsupported = errors.New("gateways cannot be shared on this system")

// suspicion is the budget of a gateway that is silent.
func (o Options) suspicion() opportunity.Budget {
	const most = 10
	return opportunity.Budget{Opportunity: o.Suspicion, Ceiling: most * o.Suspicion}
}

// Lease is a host's hold on a shared gateway, until Release.
type Lease struct {
	Gateway
	// Waits is what Acquire waited for.
	Waits Waits
	o     Options
	lease *lease
}

// Waits is what an Acquire waited for, in all.
type Waits struct {
	// Lock is the wait for gateway.lock, Answer that for a gateway to answer:
	// most of it is the gateway's own start. Launches is how many gateways this
	// host started: 0 when another had.
	Lock, Answer time.Duration
	Launches     int
}

// ID names the lease; a kernel that carries it lives no longer than the lease,
// unless a journal names the kernel.
func (l *Lease) ID() string { return filepath.Base(l.lease.path) }

// Release gives the gateway back. It ends nothing: the gateway ends by itself
// when it is not used.
func (l *Lease) Release() { l.lease.release() }

// Acquire finds the gateway of o.Runtime and o.Shard or starts it.
func Acquire(ctx context.Context, o Options) (*Lease, error) {
	if !Supported {
		return nil, ErrUnsupported
	}
	o = o.withDefaults()
	most := o.Start.Ceiling + o.suspicion().Ceiling
	ctx, done := opportunity.Within(ctx, opportunity.Budget{Opportunity: most, Ceiling: most}, nil) // our own standing still is no time
	defer done()
	if err := prepare(o.Dir); err != nil {
		return nil, err
	}
	fingerprint := Fingerprint(o.Runtime)
	at := place(fingerprint, o.Shard)
	hold, err := newLease(o.Dir, at)
	if err != nil {
		return nil, err
	}
	s := &search{o: o, fingerprint: fingerprint, place: at}
	g, err := s.find(ctx)
	if err != nil {
		s.giveUp(ctx)
		hold.release()
		return nil, err
	}
	s.join(ctx)
	return &Lease{Gateway: g, Waits: s.waits, o: o, lease: hold}, nil
}

// client makes the requests that ask whether a gateway lives: no connection is
// kept, no proxy, no redirect takes the token elsewhere.
var client = &http.Client{
	Timeout:       5 * time.Second, // an answer that is given up was made for nothing, by a gateway that is late anyway
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// healthy returns nil when the gateway answers. Whatever has the process, the
// port and the token is the gateway; a status other than success is an answer too,
// except that of a wrong token: then another program has the port.
func healthy(ctx context.Context, g Gateway) error {
	resp, err := ask(ctx, g)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// kernels returns how many kernels a gateway has, -1 when it does not say.
func kernels(ctx context.Context, g Gateway) (int, error) {
	resp, err := ask(ctx, g)
	if err != nil {
		return -1, err
	}
	defer func() { _ = resp.Body.Close() }()
	var all []json.RawMessage
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&all) != nil {
		return -1, nil
	}
	return len(all), nil
}

// ask asks a gateway for its kernels.
func ask(ctx context.Context, g Gateway) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+"/api/kernels", nil)
	if err != nil {
		return nil, fmt.Errorf("ask the gateway: %w", err)
	}
	req.Header.Set("Authorization", "token "+g.Token)
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the gateway: %w", err)
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		_ = resp.Body.Close()
		return nil, errors.New("it refuses its own token")
	}
	return resp, nil
}
