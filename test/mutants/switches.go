package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// switchEnv is where the tests find the number of the change that they are to run with.
const switchEnv = "COPPICE_TEST_CHANGE"

// helpers are what changed code calls. A change is on when its number is that of the process.
const helpers = `package %s

import "cmp"

import switchOS "os"

import switchConv "strconv"

type switchNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

type switchInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

var switched = func() int { n, _ := switchConv.Atoi(switchOS.Getenv("` + switchEnv + `")); return n }()

func switchOn(n int) bool { return switched == n }

func switchAnd(n int, a bool, b func() bool) bool {
	if switched == n {
		return a || b()
	}
	return a && b()
}

func switchOr(n int, a bool, b func() bool) bool {
	if switched == n {
		return a && b()
	}
	return a || b()
}

func switchLess[T cmp.Ordered](n int, a, b T) bool   { return a < b || switched == n && a == b }
func switchMore[T cmp.Ordered](n int, a, b T) bool   { return a > b || switched == n && a == b }
func switchLessEq[T cmp.Ordered](n int, a, b T) bool { return a < b || switched != n && a == b }
func switchMoreEq[T cmp.Ordered](n int, a, b T) bool { return a > b || switched != n && a == b }

func switchAdd[T switchNumber](n int, a, b T) T {
	if switched == n {
		return a - b
	}
	return a + b
}

func switchSub[T switchNumber](n int, a, b T) T {
	if switched == n {
		return a + b
	}
	return a - b
}

func switchMul[T switchNumber](n int, a, b T) T {
	if switched == n {
		return a / b
	}
	return a * b
}

func switchDiv[T switchNumber](n int, a, b T) T {
	if switched == n {
		return a * b
	}
	return a / b
}

func switchRem[T switchInteger](n int, a, b T) T {
	if switched == n {
		return a * b
	}
	return a %% b
}

func switchInc[T switchNumber](n int, a T) T {
	if switched == n {
		return a - 1
	}
	return a + 1
}

func switchDec[T switchNumber](n int, a T) T {
	if switched == n {
		return a + 1
	}
	return a - 1
}
`

var (
	logical    = map[token.Token]string{token.LAND: "switchAnd", token.LOR: "switchOr"}
	boundaries = map[token.Token]string{token.LSS: "switchLess", token.GTR: "switchMore", token.LEQ: "switchLessEq", token.GEQ: "switchMoreEq"}
	arithmetic = map[token.Token]string{token.ADD: "switchAdd", token.SUB: "switchSub", token.MUL: "switchMul", token.QUO: "switchDiv", token.REM: "switchRem"}
	steps      = map[token.Token]string{token.INC: "switchInc", token.DEC: "switchDec"}
)

// place is where a change is: no two of one kind are at the same.
type place struct {
	file, kind   string
	line, column int
}

func (c change) place() place { return place{c.file, c.kind, c.line, c.column} }

// edit is a piece of text in the place of another one.
type edit struct {
	from, to int // offsets
	text     string
}

// switcher has all changes of a package in one program, where this can be said in Go: each of
// them then takes a run of the tests, and no build.
type switcher struct {
	fset    *token.FileSet
	info    *types.Info
	name    string            // of the file, in the repository
	numbers map[place]int     // of the changes that are to be tried
	in      map[place]int     // of those that are in the program
	edits   map[string][]edit // by file
}

// switches writes an overlay of the package with all changes that can be switched, and says
// which number has which.
func (b *bench) switches(ctx context.Context, todo []change) (overlay string, in map[place]int, err error) {
	s := &switcher{fset: token.NewFileSet(), numbers: map[place]int{}, in: map[place]int{}, edits: map[string][]edit{}}
	for i, c := range todo {
		s.numbers[c.place()] = i + 1
	}
	pkg, err := b.list(ctx)
	if err != nil {
		return "", nil, err
	}
	files := make([]*ast.File, len(pkg.GoFiles))
	for i, name := range pkg.GoFiles {
		if files[i], err = parser.ParseFile(s.fset, filepath.Join(pkg.Dir, name), nil, parser.ParseComments); err != nil {
			return "", nil, fmt.Errorf("read what is to be changed: %w", err)
		}
	}
	s.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	read := importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(pkg.exports[path]) })
	if _, err := (&types.Config{Importer: read}).Check(b.pkg, s.fset, files, s.info); err != nil {
		return "", nil, fmt.Errorf("read the types of %s: %w", b.pkg, err)
	}
	replace := map[string]string{}
	for i, f := range files {
		s.name = b.pkg + "/" + pkg.GoFiles[i]
		ast.Walk(s, f)
		file := filepath.Join(pkg.Dir, pkg.GoFiles[i])
		text, err := os.ReadFile(file)
		if err != nil {
			return "", nil, fmt.Errorf("read what is to be changed: %w", err)
		}
		replace[file] = filepath.Join(b.temp, pkg.GoFiles[i])
		if err := os.WriteFile(replace[file], s.edited(text), 0o600); err != nil {
			return "", nil, fmt.Errorf("write all changes: %w", err)
		}
	}
	more := filepath.Join(b.temp, "switches.go")
	replace[filepath.Join(pkg.Dir, "switches_of_changes.go")] = more
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", nil, fmt.Errorf("write all changes: %w", err)
	}
	overlay = filepath.Join(b.temp, "overlay.json")
	err = errors.Join(os.WriteFile(more, fmt.Appendf(nil, helpers, files[0].Name.Name), 0o600), os.WriteFile(overlay, list, 0o600))
	if err != nil {
		return "", nil, fmt.Errorf("write all changes: %w", err)
	}
	return overlay, s.in, nil
}

// listed is a package as go list knows it.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	exports                 map[string]string // of all that it imports, by path
}

// list has the package and the compiled ones that it imports.
func (b *bench) list(ctx context.Context) (listed, error) {
	list := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles", "./"+b.pkg) //nolint:gosec // whoever runs this named the package
	list.Dir = b.tree
	var problem bytes.Buffer
	list.Stderr = &problem
	text, err := list.Output()
	if err != nil {
		return listed{}, fmt.Errorf("list the package %s: %w: %s", b.pkg, err, problem.Bytes())
	}
	var last listed
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return listed{}, fmt.Errorf("list the package %s: %w", b.pkg, err)
		}
		exports[p.ImportPath] = p.Export
		last = p // what is asked for comes after what it needs
	}
	last.exports = exports
	return last, nil
}

// number takes the number of a change at a place into the program; 0: there is none.
func (s *switcher) number(pos token.Pos, kind string) int {
	at := s.fset.Position(pos)
	p := place{s.name, kind, at.Line, at.Column}
	n := s.numbers[p]
	if n > 0 {
		s.in[p] = n
	}
	return n
}

func (s *switcher) put(from, to token.Pos, text string) {
	s.edits[s.name] = append(s.edits[s.name], edit{s.fset.Position(from).Offset, s.fset.Position(to).Offset, text})
}

// Visit puts the changes of an expression or a statement into the program.
func (s *switcher) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		s.binary(n)
		return nil
	case *ast.IncDecStmt:
		if name, is := n.X.(*ast.Ident); is {
			if at := s.number(n.TokPos, "INCREMENT_DECREMENT"); at > 0 {
				s.put(n.TokPos, n.End(), fmt.Sprintf(" = %s(%d, %s)", steps[n.Tok], at, name.Name))
			}
		}
	}
	return s
}

// binary does so for two operands: what is put around the outer expression comes before what is put
// around its left operand, and after what is put around its right one.
func (s *switcher) binary(n *ast.BinaryExpr) {
	before, between, after := s.around(n)
	if before != "" {
		s.put(n.Pos(), n.Pos(), before)
	}
	ast.Walk(s, n.X)
	if between != "" {
		s.put(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), between)
	}
	ast.Walk(s, n.Y)
	if after != "" {
		s.put(n.End(), n.End(), after)
	}
}

// around is what is put before and after an expression, and in the place of its operator.
func (s *switcher) around(n *ast.BinaryExpr) (before, between, after string) {
	boundary := boundaries[n.Op]
	switch constant := s.info.Types[n].Value != nil; {
	case constant: // it has to stay one
	case logical[n.Op] != "":
		if at := s.number(n.OpPos, "INVERT_LOGICAL"); at > 0 {
			return fmt.Sprintf("%s(%d, ", logical[n.Op], at), ", func() bool { return (", ") })"
		}
	case boundary != "", n.Op == token.EQL, n.Op == token.NEQ:
		if at := s.number(n.OpPos, "CONDITIONALS_NEGATION"); at > 0 {
			before, after = "((", fmt.Sprintf(") != switchOn(%d))", at)
		}
		if at := s.number(n.OpPos, "CONDITIONALS_BOUNDARY"); boundary != "" && at > 0 {
			before, between, after = before+fmt.Sprintf("%s(%d, ", boundary, at), ", ", ")"+after
		}
	case arithmetic[n.Op] != "" && s.isNumber(n):
		if at := s.number(n.OpPos, "ARITHMETIC_BASE"); at > 0 {
			return fmt.Sprintf("%s(%d, ", arithmetic[n.Op], at), ", ", ")"
		}
	}
	return before, between, after
}

func (s *switcher) isNumber(n ast.Expr) bool {
	basic, is := s.info.Types[n].Type.Underlying().(*types.Basic)
	return is && basic.Info()&types.IsNumeric != 0 && basic.Info()&(types.IsUntyped|types.IsComplex) == 0
}

// edited is the text of a file with all that is put into it.
func (s *switcher) edited(text []byte) []byte {
	edits := s.edits[s.name]
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	at := 0
	for _, e := range edits {
		out.Write(text[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(text[at:])
	return []byte(out.String())
}
