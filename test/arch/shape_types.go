package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	Standard   bool
	GoFiles    []string
	Module     *struct{ Path string }
}

// list asks go for packages and all that they import, with compiled export data. It
// builds what is not in the build cache, in the way that this test was built.
func list(root string, patterns ...string) ([]listed, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,Standard,GoFiles,Module"}
	if raceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, patterns...)...) //nolint:noctx // a test's timeout ends it
	cmd.Dir = root
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, errs.Bytes())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read the answer of go list: %w", err)
		}
		all = append(all, p)
	}
}

// uses says, for each file of a package, which others it reaches by names: those that
// declare a function, type, variable, constant, method or field which it mentions.
type uses map[string]map[string]bool

// filesOf type-checks the packages of the module and returns the uses of each, by its
// folder.
func filesOf(tree *Tree, root string, all []listed) (map[string]uses, error) {
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	read := importer.ForCompiler(tree.Fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	found := map[string]uses{}
	for _, p := range all {
		if p.Module == nil || p.Module.Path != Module {
			continue
		}
		rel, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		dir := filepath.ToSlash(rel)
		var asts []*ast.File
		for _, name := range p.GoFiles {
			if f := tree.File(strings.TrimPrefix(dir+"/"+name, "./")); f != nil {
				asts = append(asts, f.AST)
			}
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
		pkg, err := (&types.Config{Importer: read, Sizes: types.SizesFor("gc", "amd64")}).Check(p.ImportPath, tree.Fset, asts, info)
		if err != nil {
			return nil, fmt.Errorf("type-check %s: %w", dir, err)
		}
		found[dir] = usesOf(tree.Fset, pkg, asts, info)
	}
	return found, nil
}

func usesOf(fset *token.FileSet, pkg *types.Package, asts []*ast.File, info *types.Info) uses {
	u := uses{}
	for _, f := range asts {
		u[fset.Position(f.Package).Filename] = map[string]bool{}
	}
	for id, obj := range info.Uses {
		if obj.Pkg() != pkg || !shared(pkg, obj) {
			continue
		}
		from, to := fset.Position(id.Pos()).Filename, fset.Position(obj.Pos()).Filename
		if u[from] != nil && u[to] != nil && from != to {
			u[from][to] = true
		}
	}
	return u
}

// shared reports whether an object is one that other files can name: declared by the
// package itself, or a method or a field.
func shared(pkg *types.Package, obj types.Object) bool {
	if obj.Parent() == pkg.Scope() {
		return true
	}
	switch o := obj.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return o.IsField()
	}
	return false
}

// knot returns the largest set of files of which each reaches each, sorted.
func (u uses) knot() []string {
	var best []string
	index, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, on[v] = append(stack, v), true
		for w := range u[v] {
			switch {
			case index[w] == 0:
				visit(w)
				low[v] = min(low[v], low[w])
			case on[w]:
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		i := slices.Index(stack, v)
		part := slices.Clone(stack[i:])
		for _, w := range part {
			on[w] = false
		}
		if stack = stack[:i]; len(part) > len(best) {
			best = part
		}
	}
	names := make([]string, 0, len(u))
	for v := range u {
		names = append(names, v)
	}
	slices.Sort(names)
	for _, v := range names {
		if index[v] == 0 {
			visit(v)
		}
	}
	slices.Sort(best)
	return best
}
