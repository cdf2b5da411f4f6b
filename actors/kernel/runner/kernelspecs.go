package runner

import (
	"context"

	"github.com/coppice-run/coppice/actors/kernel"
)

// The names of the kernelspec that there is: that of Python everywhere, and one that no other
// kernel has, for hosts with several backends.
const (
	KernelName = "coppice"
	python3    = "python3"
)

// Usual is true of both names.
func (*Backend) Usual(name string) bool { return name == KernelName || name == python3 }

// Has is true of the name that no other kernel has.
func (*Backend) Has(name string) bool { return name == KernelName }

// Kernelspecs returns both. It waits for nothing.
func (*Backend) Kernelspecs(context.Context) ([]kernel.Kernelspec, error) {
	spec := kernel.Kernelspec{Name: python3, DisplayName: "Python 3 (Coppice)", Language: "python", Backend: Name}
	own := spec
	own.Name, own.DisplayName = KernelName, "Coppice (Python 3)"
	return []kernel.Kernelspec{spec, own}, nil
}

var _ kernel.Polyglot = (*Backend)(nil)
