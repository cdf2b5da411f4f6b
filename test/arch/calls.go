package arch

import (
	"go/ast"
	"go/token"
)

// checkHollywood is about files that import Hollywood; it goes by the names of
// selectors, as it has no types.
func checkHollywood(t *Tree) []Violation {
	out := found{tree: t}
	for _, f := range t.Go() {
		if _, ok := f.Imports()[hollywood]; !ok {
			continue
		}
		inside := f.Dir() == "supervisor"
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				switch n.Sel.Name {
				case "Poison", "PoisonCtx", "Request":
					// A test of the supervisor may do to an actor what a stranger could.
					if !inside || !f.IsTest() {
						out.at(f, n.Sel.Pos(), "%s of Hollywood is forbidden", n.Sel.Name)
					}
				case "Children", "WithMaxRestarts":
					if !inside {
						out.at(f, n.Sel.Pos(), "%s of Hollywood is for package supervisor alone", n.Sel.Name)
					}
				}
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "WithMaxRestarts" && !isMinusOne(n.Args) {
					out.at(f, sel.Sel.Pos(), "WithMaxRestarts takes -1: any limit ends the process when it is reached")
				}
			}
			return true
		})
	}
	return out.sorted()
}

func isMinusOne(args []ast.Expr) bool {
	if len(args) != 1 {
		return false
	}
	neg, ok := args[0].(*ast.UnaryExpr)
	if !ok || neg.Op != token.SUB {
		return false
	}
	one, ok := neg.X.(*ast.BasicLit)
	return ok && one.Value == "1"
}

// timeless are the folders whose code may not look at the clock.
var timeless = []string{"supervisor/strategy"}

func checkClock(t *Tree) []Violation {
	out := found{tree: t}
	for _, f := range t.Go() {
		if f.IsTest() || !matchesAny(timeless, f.Dir()) {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !isIdent(sel.X, "time") {
				return true
			}
			switch sel.Sel.Name {
			case "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker":
				out.at(f, sel.Sel.Pos(), "time.%s in %s: the view says what time it is", sel.Sel.Name, f.Dir())
			}
			return true
		})
	}
	return out.sorted()
}

const guardFile = "supervisor/guard.go"

func checkRecover(t *Tree) []Violation {
	out := found{tree: t}
	for _, f := range t.Go() {
		if f.Path == guardFile {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isIdent(call.Fun, "recover") {
				out.at(f, call.Pos(), "recover is called outside %s", guardFile)
			}
			return true
		})
	}
	return out.sorted()
}

func checkGoroutineLeaks(t *Tree) []Violation {
	out := found{tree: t}
	starts := map[string]*File{}
	proves := map[string]bool{}
	for _, f := range t.Go() {
		dir := f.Dir()
		if f.IsTest() {
			if _, ok := f.Imports()["go.uber.org/goleak"]; ok && callsVerify(f.AST) {
				proves[dir] = true
			}
			continue
		}
		if starts[dir] == nil && startsGoroutine(f.AST) {
			starts[dir] = f
		}
	}
	for dir, f := range starts {
		if !proves[dir] {
			out.at(f, token.NoPos, "package %s starts goroutines, but no TestMain of it calls goleak.VerifyTestMain", dir)
		}
	}
	return out.sorted()
}

func startsGoroutine(file *ast.File) bool {
	yes := false
	ast.Inspect(file, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			yes = true
		}
		return !yes
	})
	return yes
}

func callsVerify(file *ast.File) bool {
	yes := false
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && isIdent(sel.X, "goleak") && (sel.Sel.Name == "VerifyTestMain" || sel.Sel.Name == "Find") {
			yes = true
		}
		return !yes
	})
	return yes
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
