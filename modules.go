package coppice

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/coppice-run/coppice/actors/python"
)

// Module is a file of the user's that every new session loads, and why that is
// known to fail, "" if it is not.
type Module = python.Module

// modules finds the modules of a session in a working directory.
func (r resolved) modules(cwd string) []Module {
	if r.NoModules || r.NoHelpers {
		return nil
	}
	project := ""
	if cwd != "" {
		project = filepath.Join(cwd, "."+r.Brand, "modules")
	}
	return python.Modules(filepath.Join(r.dir, "agent", "modules"), project)
}

// modulesCode is what a new session in a working directory runs after the prelude.
// The files are read for each, so that a reset finds them as they are now.
func (h *Host) modulesCode(cwd string) string {
	code, err := python.ModulesCode(h.o.modules(cwd))
	if err != nil {
		h.o.Logger.Warn("modules are left out", "err", err)
		return ""
	}
	return code
}

// HelpersIn lists the functions that a session in a working directory has: those of
// [Host.Helpers] and, after them, those that the user's modules offer. cwd "" is
// that of this process. The modules are read by an interpreter and not run; the
// list is kept, and made anew when one of them has changed. Modules are all of
// them, in the order in which they are loaded.
//
// The error says why the modules could not be read; the list then has the others.
func (h *Host) HelpersIn(ctx context.Context, cwd string) (helpers []Helper, modules []Module, err error) {
	helpers = h.Helpers()
	if cwd, err = cleanCwd(cwd); err != nil {
		return helpers, nil, err
	}
	found, modules, err := describeModules(ctx, h.o, cwd)
	for _, f := range found {
		helpers = append(helpers, Helper(f))
	}
	return helpers, modules, err
}

// describeModules lists what modules offer.
func describeModules(ctx context.Context, r resolved, cwd string) ([]python.ModuleFunction, []Module, error) {
	found, modules, err := python.DescribeModules(ctx, filepath.Join(r.dir, "agent", "pycache"), r.modules(cwd), func(ctx context.Context) (python.Runtime, error) {
		return python.Resolve(ctx, python.Options{Python: r.Python, Cwd: cwd, Home: r.dir, Env: r.Env})
	})
	if err != nil {
		return nil, modules, fmt.Errorf("list what modules offer: %w", err)
	}
	return found, modules, nil
}
