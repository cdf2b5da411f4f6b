package arch

import (
	"go/ast"
	"go/token"
	"strings"
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
					// A test of the supervisor may do to a cell what a stranger could.
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

// waitsAllowed names the files that may sleep or skip, each with the reason.
var waitsAllowed = map[string]string{}

// checkWaits forbids time.Sleep everywhere but in a synctest bubble, where time
// is a number, and skips that a machine without some program would take.
func checkWaits(t *Tree) []Violation {
	out := found{tree: t}
	for _, f := range t.Go() {
		if waitsAllowed[f.Path] != "" {
			continue
		}
		bubbles := synctestBubbles(f.AST)
		ast.Inspect(f.AST, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch {
			case sel.Sel.Name == "Sleep" && isIdent(sel.X, "time"):
				if !within(bubbles, sel.Pos()) {
					out.at(f, sel.Pos(), "time.Sleep: wait for the event, or use testing/synctest")
				}
			case f.IsTest() && (sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf" || sel.Sel.Name == "SkipNow"):
				if isIdent(sel.X, "t") || isIdent(sel.X, "tb") || isIdent(sel.X, "b") {
					out.at(f, sel.Pos(), "%s hides a test: make it run, or give the file a build constraint", sel.Sel.Name)
				}
			}
			return true
		})
	}
	return out.sorted()
}

type span struct{ from, to token.Pos }

func within(spans []span, pos token.Pos) bool {
	for _, s := range spans {
		if s.from <= pos && pos < s.to {
			return true
		}
	}
	return false
}

// synctestBubbles returns the extents of the calls of synctest.Test, and of
// functions that say by their name that they run in a bubble.
func synctestBubbles(file *ast.File) []span {
	var spans []span
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Test" && isIdent(sel.X, "synctest") {
				spans = append(spans, span{n.Pos(), n.End()})
			}
		case *ast.FuncDecl:
			if strings.HasSuffix(n.Name.Name, "InBubble") {
				spans = append(spans, span{n.Pos(), n.End()})
			}
		}
		return true
	})
	return spans
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
