package walls

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/egress"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// Egress is the way of what stands behind walls to the hosts that its isolation names. It is
// opened when it is first asked for. The zero value is ready to use; any goroutine may call the
// methods.
type Egress struct {
	mu    sync.Mutex
	proxy *egress.Proxy // nil: it was not opened; guarded by mu
}

// Open has rules leave what is behind them the network that their isolation names, and returns
// the environment with what programs need for that.
func (e *Egress) Open(i Isolation, rules *sandbox.Rules, env []string) ([]string, error) {
	rules.Loopback = i.Loopback || len(i.Hosts) > 0
	if rules.Network || len(i.Hosts) == 0 {
		return env, rules.CheckNetwork()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.proxy == nil {
		hosts, err := egress.Parse(i.Hosts)
		if err != nil {
			return nil, err
		}
		if e.proxy, err = egress.Start(context.Background(), hosts); err != nil {
			return nil, err
		}
	}
	rules.Port = e.proxy.Port()
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(egress.Names, name)
	})
	return append(env, e.proxy.Env()...), rules.CheckNetwork()
}

// Refused returns the hosts that were refused, the newest last.
func (e *Egress) Refused() []kernel.Refusal {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.proxy == nil {
		return nil
	}
	var all []kernel.Refusal
	for _, r := range e.proxy.Refused() {
		all = append(all, kernel.Refusal(r))
	}
	return all
}

// Close closes the way, and ends what goes on there.
func (e *Egress) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.proxy == nil {
		return nil
	}
	err := e.proxy.Close()
	e.proxy = nil
	return err
}
