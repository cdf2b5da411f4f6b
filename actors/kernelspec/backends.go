package kernelspec

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/supervisor"
)

// Backends are those of one host. The zero value has none.
type Backends struct {
	// First makes the kernels of sessions that name no kernelspec. Required.
	First kernel.Backend
	// Second makes those of sessions that name one of its kernelspecs. nil: there is none.
	Second kernel.Backend
}

// all are those that are there, the first one first.
func (b Backends) all() []kernel.Backend {
	switch {
	case b.First == nil:
		return nil
	case b.Second == nil:
		return []kernel.Backend{b.First}
	}
	return []kernel.Backend{b.First, b.Second}
}

// Usual reports whether sessions that name no kernelspec have the one of this name.
func (b Backends) Usual(name string) bool {
	p, ok := b.First.(kernel.Polyglot)
	return name == "" || ok && p.Usual(name)
}

// With returns the backend that has a kernelspec, "" for that of sessions that name none. The
// error says that there is none for certain.
func (b Backends) With(name string) (kernel.Backend, error) {
	if b.Usual(name) {
		return b.First, nil
	}
	for _, one := range []kernel.Backend{b.Second, b.First} {
		if p, ok := one.(kernel.Polyglot); ok && p.Has(name) {
			return one, nil
		}
	}
	return nil, fmt.Errorf("%.80q is no kernel of this host: the %s backend has only its own; leave it out", name, b.First.Name())
}

// Maker is With for a start, which says itself that there is no such kernelspec.
func (b Backends) Maker(name string) kernel.Backend {
	if one, err := b.With(name); err == nil {
		return one
	}
	return b.First
}

// Kernelspecs returns those that sessions may name, that of sessions that name none first. It
// waits while the process starts that kernels come from; the error is why they are not known.
func (b Backends) Kernelspecs(ctx context.Context) ([]kernel.Kernelspec, error) {
	var list []kernel.Kernelspec
	for _, one := range b.all() {
		p, ok := one.(kernel.Polyglot)
		if !ok {
			continue
		}
		specs, err := p.Kernelspecs(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range specs {
			if by, err := b.With(s.Name); err == nil && by == one {
				list = append(list, s)
			}
		}
	}
	return list, nil
}

// Servers are the children of a gateway with the processes that kernels come from.
func (b Backends) Servers() []supervisor.Spec {
	var list []supervisor.Spec
	for _, one := range b.all() {
		if s, ok := one.(kernel.Served); ok {
			list = append(list, *kernel.ServerSpec(s.Process()))
		}
	}
	return list
}

// Close removes what they have made.
func (b Backends) Close() error {
	var failed error
	for _, one := range b.all() {
		if c, ok := one.(kernel.Closer); ok {
			failed = errors.Join(failed, c.Close())
		}
	}
	return failed
}
