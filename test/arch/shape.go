package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// Shape is what can be counted of a tree's form. Tests are not in it but in Ratio.
type Shape struct {
	// RootFiles, RootLines and RootNames are the files of the root package, their
	// lines, and the names that it exports: functions, types, variables, constants.
	RootFiles, RootLines, RootNames int
	// Knots is, for each package, how many of its files form the largest knot, in which
	// each reaches each by the names that it uses, and Files how many it has.
	Knots, Files map[string]int
	// Branchy are the functions of a cyclomatic complexity over 20.
	Branchy []string
	// Ratio is the lines of tests for each line of source, by top-level folder.
	Ratio map[string]float64
	// Linked are the third-party packages that a host of twenty lines links.
	Linked []string
}

// smallHost is the program whose dependencies count.
const smallHost = "./examples/tenlines"

// tooBranchy is the cyclomatic complexity that a function should not pass.
const tooBranchy = 20

// Measure counts the shape of the repository at root. It runs the go command, which
// compiles what is not in the build cache; the error is about that.
func Measure(tree *Tree, root string) (*Shape, error) {
	all, err := list(root, "./...")
	if err != nil {
		return nil, err
	}
	byDir, err := filesOf(tree, root, all)
	if err != nil {
		return nil, err
	}
	linked, err := list(root, smallHost)
	if err != nil {
		return nil, err
	}
	s := &Shape{Knots: map[string]int{}, Files: map[string]int{}, Ratio: map[string]float64{}}
	for dir, u := range byDir {
		s.Knots[dir], s.Files[dir] = len(u.knot()), len(u)
	}
	for _, p := range linked {
		if !p.Standard && p.Module != nil && p.Module.Path != Module {
			s.Linked = append(s.Linked, p.ImportPath)
		}
	}
	s.count(tree)
	return s, nil
}

// count counts what needs no types.
func (s *Shape) count(tree *Tree) {
	source, tests := map[string]int{}, map[string]int{}
	for _, f := range tree.Go() {
		top, _, _ := strings.Cut(f.Path, "/")
		if f.Dir() == "." {
			top = "."
		}
		if f.IsTest() {
			tests[top] += f.Lines()
			continue
		}
		source[top] += f.Lines()
		if f.Dir() == "." {
			s.RootFiles++
			s.RootLines += f.Lines()
			s.RootNames += exported(f.AST)
		}
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && cyclomatic(fn) > tooBranchy {
				s.Branchy = append(s.Branchy, fmt.Sprintf("%s:%d: %s has %d branches", f.Path, tree.Line(fn.Pos()), fn.Name.Name, cyclomatic(fn)))
			}
		}
	}
	for top, n := range source {
		s.Ratio[top] = float64(tests[top]) / float64(max(n, 1))
	}
}

// exported counts the names that a file adds to its package's API; methods and fields
// belong to their types.
func exported(f *ast.File) int {
	n := 0
	count := func(id *ast.Ident) {
		if id.IsExported() {
			n++
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				count(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					count(spec.Name)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						count(id)
					}
				}
			}
		}
	}
	return n
}

// cyclomatic is McCabe's number of a function: one, and one for each place where it
// branches.
func cyclomatic(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// Row is one line of the table before and after.
type Row struct {
	What          string
	Before, After string
}

// Table is the shape beside that of the tree before it was rebuilt: at 812959c, when
// this program counted it.
func (s *Shape) Table() []Row {
	number := func(n int) string { return fmt.Sprint(n) }
	knot := func(dir string) string { return fmt.Sprintf("%d of %d", s.Knots[dir], s.Files[dir]) }
	rows := []Row{
		{"root: files", before["root: files"], number(s.RootFiles)},
		{"root: lines", before["root: lines"], number(s.RootLines)},
		{"root: exported names", before["root: exported names"], number(s.RootNames)},
		{"largest knot: root", before["largest knot: root"], knot(".")},
		{"largest knot: supervisor", before["largest knot: supervisor"], knot("supervisor")},
		{"largest knot: cmd/internal/cli", before["largest knot: cmd/internal/cli"], knot("cmd/internal/cli")},
		{"functions of more than 20 branches", before["functions of more than 20 branches"], number(len(s.Branchy))},
		{"third-party packages of a small host", before["third-party packages of a small host"], number(len(s.Linked))},
	}
	for _, top := range slices.Sorted(maps.Keys(s.Ratio)) {
		what := "tests to source: " + top
		rows = append(rows, Row{what, before[what], fmt.Sprintf("%.2f", s.Ratio[top])})
	}
	return rows
}
