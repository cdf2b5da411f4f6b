package environment

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/pysrc"
)

// Module is a file of the user's that every new session loads, and why that is
// known to fail, "" if it is not.
type Module = pyenv.Module

// Modules finds the modules of a session in a working directory, in the order in
// which they are loaded: ~/.<brand>/agent/modules/*.py, and <cwd>/.<brand>/modules/*.py,
// which come in place of those with the same name. cwd "": only those of the user.
// The files are read and not run. The error matches [ErrOptions].
func Modules(o Options, cwd string) ([]Module, error) {
	place, err := o.resolve()
	if err != nil {
		return nil, err
	}
	project := ""
	if cwd != "" {
		project = filepath.Join(cwd, "."+place.Brand, "modules")
	}
	return pyenv.Modules(place.Join("agent", "modules"), project), nil
}

// ModulesCode is the code that loads modules into a session that has the helpers,
// "" for no module.
func ModulesCode(modules []Module) (string, error) {
	sources := make([]pysrc.Source, len(modules))
	for i, m := range modules {
		sources[i] = pysrc.Source{Path: m.Path, Text: m.Text, Problem: m.Problem}
	}
	return pysrc.ModulesCode(sources)
}

// ModuleHelpers lists the functions that the modules of a session in a working
// directory offer, and all modules in the order in which they are loaded, with the
// problems that show. The modules are read by the interpreter of the host, see
// [Find], and not run; the list is kept in ~/.<brand>/agent/pycache, and made again when one of them has changed.
//
// cwd is absolute, as for [Modules]. The error says why the modules could not be
// read.
func ModuleHelpers(ctx context.Context, o Options, cwd string) ([]Helper, []Module, error) {
	modules, err := Modules(o, cwd)
	if err != nil {
		return nil, nil, err
	}
	place, err := o.resolve()
	if err != nil {
		return nil, nil, err
	}
	found, modules, err := pyenv.DescribeModules(ctx, place.Join("agent", "pycache"), modules, func(ctx context.Context) (Runtime, error) {
		return pyenv.Resolve(ctx, search(o, place))
	})
	if err != nil {
		return nil, modules, fmt.Errorf("list what modules offer: %w", err)
	}
	helpers := make([]Helper, len(found))
	for i, f := range found {
		helpers[i] = Helper(f)
	}
	return helpers, modules, nil
}
