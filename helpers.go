package coppice

import (
	"context"

	"github.com/coppice-run/coppice/environment"
)

// Helpers lists the functions that every session has, by category and name. It is
// empty with [Options.NoHelpers].
func (h *Host) Helpers() []environment.Helper {
	if h.o.NoHelpers {
		return nil
	}
	return environment.Helpers()
}

// HelpersIn lists the functions that a session in a working directory has: those of
// [Host.Helpers] and, after them, those that the user's modules offer. cwd "" is
// that of this process. The modules are read by an interpreter and not run; the
// list is kept, and made again when one of them has changed. Modules are all of
// them, in the order in which they are loaded.
//
// The error says why the modules could not be read; the list then has the others.
func (h *Host) HelpersIn(ctx context.Context, cwd string) (helpers []environment.Helper, modules []environment.Module, err error) {
	helpers = h.Helpers()
	if cwd, err = cleanCwd(cwd); err != nil || !h.o.modules() {
		return helpers, nil, err
	}
	found, modules, err := environment.ModuleHelpers(ctx, h.o.environment(), cwd)
	return append(helpers, found...), modules, err
}

// modules says whether sessions load the user's modules.
func (r resolved) modules() bool { return !r.NoModules && !r.NoHelpers }

// modulesCode is what a new session in a working directory runs after the prelude.
// The files are read for each, so that a reset finds them as they are now.
func (h *Host) modulesCode(cwd string) string {
	if !h.o.modules() {
		return ""
	}
	modules, err := environment.Modules(h.o.environment(), cwd)
	code := ""
	if err == nil {
		code, err = environment.ModulesCode(modules)
	}
	if err != nil {
		h.o.Logger.Warn("modules are left out", "err", err)
		return ""
	}
	return code
}
