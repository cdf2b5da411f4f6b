package pyenv

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed preflight.py
var preflightScript string

// Package is one package that a kernel gateway needs.
type Package struct {
	// Module is the name to import, Dist the name to install.
	Module string `json:"module"`
	Dist   string `json:"dist"`
	// Found says whether the module can be imported, as far as its files tell.
	Found bool `json:"found"`
	// Version is "" when it is not known.
	Version string `json:"version,omitempty"`
}

// needed are the packages that Preflight asks about. jupyter_server comes with
// jupyter_kernel_gateway, and can stand in for it.
var needed = []Package{
	{Module: "kernel_gateway", Dist: "jupyter_kernel_gateway"},
	{Module: "jupyter_server", Dist: "jupyter_server"},
	{Module: "ipykernel", Dist: "ipykernel"},
}

// JupyterServerOnly says that packages which Preflight has accepted hold no Kernel
// Gateway, so that Jupyter Server serves in its place.
func JupyterServerOnly(packages []Package) bool {
	return slices.ContainsFunc(packages, func(p Package) bool { return p.Module == "kernel_gateway" && !p.Found })
}

// Preflight says which packages for a kernel gateway an interpreter has. It
// runs the interpreter once, for at most a minute, and imports none of them. The
// packages are returned also with a [*MissingPackagesError], which is the error
// when one is missing. Jupyter Server 2 or newer may stand in for a missing
// Kernel Gateway: see [JupyterServerOnly].
func Preflight(ctx context.Context, rt Runtime) ([]Package, error) {
	args := []string{"-c", preflightScript}
	for _, p := range needed {
		args = append(args, p.Module+"="+p.Dist)
	}
	out, err := run(ctx, command{python: rt.Path, args: args, env: rt.Env})
	if err != nil {
		return nil, fmt.Errorf("ask %s for its packages: it %w", rt.Path, err)
	}
	packages := parsePackages(out)
	if missing := missingOf(packages); len(missing) > 0 {
		return packages, &MissingPackagesError{Python: rt.Path, Version: rt.Version, Source: rt.Source, Missing: missing}
	}
	return packages, nil
}

// parsePackages reads the answer of preflight.py. What it does not mention is
// not found.
func parsePackages(out string) []Package {
	packages := slices.Clone(needed)
	for l := range strings.Lines(out) {
		f := strings.Fields(l)
		if len(f) != 4 || f[0] != "coppice-package" {
			continue
		}
		for i := range packages {
			if packages[i].Module == f[1] && f[2] == "yes" {
				packages[i].Found = true
				packages[i].Version = strings.TrimPrefix(f[3], "?")
			}
		}
	}
	return packages
}

func missingOf(packages []Package) []string {
	standIn := slices.ContainsFunc(packages, func(p Package) bool {
		major, _, _ := strings.Cut(p.Version, ".")
		n, err := strconv.Atoi(major)
		return p.Module == "jupyter_server" && p.Found && err == nil && n >= 2
	})
	var missing []string
	for _, p := range packages {
		if !p.Found && !(standIn && p.Module == "kernel_gateway") {
			missing = append(missing, p.Dist)
		}
	}
	return missing
}
