package jupyter

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/coppice-run/coppice/actors/kernel"
)

// Usual reports whether sessions that name no kernelspec have the one of this name.
func (b *Backend) Usual(name string) bool { return name == b.o.KernelName }

// Has is true: which kernelspecs there are, the server knows.
func (b *Backend) Has(string) bool { return true }

// Kernelspecs asks the server, which it waits for.
func (b *Backend) Kernelspecs(ctx context.Context) ([]kernel.Kernelspec, error) {
	server, err := b.o.Server.endpoint(ctx, kernel.StartOptions{Progress: func(string) {}, Waiting: func(kernel.Waiting) {}})
	if err != nil {
		return nil, fmt.Errorf("ask for the kernelspecs: %w", err)
	}
	all, err := server.Client.Kernelspecs(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the kernelspecs: %w", err)
	}
	list := make([]kernel.Kernelspec, 0, len(all.Specs))
	for name, s := range all.Specs {
		list = append(list, kernel.Kernelspec{Name: name, DisplayName: cmp.Or(s.DisplayName, name), Language: s.Language, Backend: Name})
	}
	first := func(s kernel.Kernelspec) int {
		if s.Name == b.o.KernelName {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(x, y kernel.Kernelspec) int {
		return cmp.Or(cmp.Compare(first(x), first(y)), cmp.Compare(x.Name, y.Name))
	})
	return list, nil
}

var _ kernel.Polyglot = (*Backend)(nil)
