package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// checkWaits forbids time.Sleep everywhere but in a synctest bubble, where time
// is a number, and skips that a machine without some program would take. A skip
// on an operating system is allowed, and one that discards an input of a fuzz
// or property test.
func checkWaits(t *Tree) []Violation {
	out := found{tree: t}
	helpers := bubbleHelpers(t)
	for _, f := range t.Go() {
		w := waitFinder{file: f, helpers: helpers[f.Dir()], out: &out}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if n == nil {
				w.stack = w.stack[:len(w.stack)-1]
				return true
			}
			w.look(n)
			w.stack = append(w.stack, n)
			return true
		})
	}
	return out.sorted()
}

// bubbleHelpers returns by folder the names of functions that take a function
// and run it in a bubble.
func bubbleHelpers(t *Tree) map[string]map[string]bool {
	helpers := map[string]map[string]bool{}
	for _, f := range t.Go() {
		for _, decl := range f.AST.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if !ok || !f.IsTest() || !takesFunction(d.Type) {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && isBubble(call) {
					if helpers[f.Dir()] == nil {
						helpers[f.Dir()] = map[string]bool{}
					}
					helpers[f.Dir()][d.Name.Name] = true
				}
				return true
			})
		}
	}
	return helpers
}

func takesFunction(t *ast.FuncType) bool {
	for _, p := range t.Params.List {
		if _, ok := p.Type.(*ast.FuncType); ok {
			return true
		}
	}
	return false
}

// isBubble reports whether a call is one of synctest.Test.
func isBubble(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Test" && isIdent(sel.X, "synctest")
}

// waitFinder walks one file; stack holds the nodes around the one it looks at.
type waitFinder struct {
	file    *File
	helpers map[string]bool
	out     *found
	stack   []ast.Node
}

func (w *waitFinder) look(n ast.Node) {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return
	}
	switch {
	case sel.Sel.Name == "Sleep" && isIdent(sel.X, "time"):
		if !w.inBubble() && !w.forBubbles() {
			w.out.at(w.file, sel.Pos(), "time.Sleep: wait for the event, or use testing/synctest")
		}
	case sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf" || sel.Sel.Name == "SkipNow":
		if id, ok := sel.X.(*ast.Ident); ok && w.isTestingValue(id.Name) && !w.onSystem() {
			w.out.at(w.file, sel.Pos(), "%s hides a test: make it run, or give the file a build constraint", sel.Sel.Name)
		}
	}
}

func (w *waitFinder) inBubble() bool {
	for _, n := range w.stack {
		if call, ok := n.(*ast.CallExpr); ok {
			if id, isName := call.Fun.(*ast.Ident); isBubble(call) || isName && w.helpers[id.Name] {
				return true
			}
		}
	}
	return false
}

// forBubbles reports whether the node stands in a function that helps tests, in
// a file whose tests run in bubbles.
func (w *waitFinder) forBubbles() bool {
	if _, ok := w.file.Imports()["testing/synctest"]; !ok || !w.file.IsTest() {
		return false
	}
	for _, n := range w.stack {
		if d, ok := n.(*ast.FuncDecl); ok {
			name := d.Name.Name
			return !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Benchmark") && !strings.HasPrefix(name, "Fuzz")
		}
	}
	return false
}

// isTestingValue reports whether name is a parameter of a type of package
// testing, in the innermost function that has a parameter of that name, and not
// the one of a fuzz input.
func (w *waitFinder) isTestingValue(name string) bool {
	for i, n := range slices.Backward(w.stack) {
		var params *ast.FieldList
		switch n := n.(type) {
		case *ast.FuncDecl:
			params = n.Type.Params
		case *ast.FuncLit:
			params = n.Type.Params
		default:
			continue
		}
		for _, p := range params.List {
			for _, id := range p.Names {
				if id.Name == name {
					return isTestingType(p.Type) && !w.fuzzes(i)
				}
			}
		}
	}
	return false
}

func isTestingType(e ast.Expr) bool {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	sel, ok := e.(*ast.SelectorExpr)
	return ok && isIdent(sel.X, "testing")
}

// fuzzes reports whether the function at stack[i] is the argument of Fuzz.
func (w *waitFinder) fuzzes(i int) bool {
	if i == 0 {
		return false
	}
	call, ok := w.stack[i-1].(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Fuzz"
}

// onSystem reports whether a condition around asks for the operating system.
func (w *waitFinder) onSystem() bool {
	for i, n := range w.stack {
		cond, ok := n.(*ast.IfStmt)
		if !ok || i+1 == len(w.stack) || w.stack[i+1] != ast.Node(cond.Body) {
			continue
		}
		asks := false
		ast.Inspect(cond.Cond, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && isIdent(sel.X, "runtime") && strings.HasPrefix(sel.Sel.Name, "GO") {
				asks = true
			}
			return true
		})
		if asks {
			return true
		}
	}
	return false
}
