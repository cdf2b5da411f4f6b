package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// look returns what there is to say of the module in a folder, for a system.
func look(ctx context.Context, dir, system string) ([]string, error) {
	all, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir, Tests: true,
		Mode:      packages.LoadAllSyntax | packages.NeedModule | packages.NeedForTest, //nolint:staticcheck // one name instead of ten bits
		Env:       append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		ParseFile: parse(dir),
	}, "./...")
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("there are no packages")
	}
	var found []string
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			found = append(found, finding(dir, e.Pos, e.Msg))
		}
	})
	graph, err := checker.Analyze(suite, unique(all), nil)
	if err != nil {
		return nil, err
	}
	for act := range graph.All() {
		if act.Err != nil && len(found) == 0 {
			return nil, fmt.Errorf("%s: %w", act, act.Err) // else it is of what was found
		}
		if !act.IsRoot {
			continue
		}
		for _, d := range act.Diagnostics {
			found = append(found, finding(dir, act.Package.Fset.Position(d.Pos).String(), d.Message))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil // a package and its variants say the same
}

// parse reads a file as go vet does, and one that is not of the module without its
// comments, which are for diagnostics alone.
func parse(dir string) func(*token.FileSet, string, []byte) (*ast.File, error) {
	return func(files *token.FileSet, name string, src []byte) (*ast.File, error) {
		mode := parser.AllErrors | parser.SkipObjectResolution
		if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(rel) {
			mode |= parser.ParseComments
		}
		return parser.ParseFile(files, name, src, mode)
	}
}

// unique leaves out the programs that run tests, and each package that is there with its
// tests too.
func unique(all []*packages.Package) []*packages.Package {
	tested := map[string]bool{}
	for _, p := range all {
		if p.ForTest == p.PkgPath {
			tested[p.PkgPath] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(p *packages.Package) bool {
		return strings.HasSuffix(p.ID, ".test") || p.ForTest == "" && tested[p.PkgPath]
	})
}

// finding is a line about a place in a file, whose name is relative to the folder.
func finding(dir, pos, text string) string {
	if pos == "" || pos == "-" {
		return text
	}
	if rel, err := filepath.Rel(dir, pos); err == nil && filepath.IsLocal(rel) {
		pos = rel
	}
	return pos + ": " + text
}
