package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// oneOfThem is the file of the root that may know the backends by name.
const oneOfThem = "backend.go"

// backendWords are the backends' names in code, and the types and functions of the root
// that are about one of them.
var backendWords = []string{"gateway", "runner", "jupyter", "Gateway", "Runner", "GatewayOptions", "RunnerOptions"}

// checkBackends holds the rest of the root to asking what a backend can do.
func checkBackends(t *Tree) []Violation {
	out := found{tree: t}
	for _, f := range t.Go() {
		if f.IsTest() || f.Dir() != "." || f.Path == oneOfThem {
			continue
		}
		for path, pos := range f.Imports() {
			if dir, ok := strings.CutPrefix(path, Module+"/"); ok && matches("actors/kernel/*", dir) && !strings.HasSuffix(dir, "/bash") {
				out.at(f, pos, "%s imports the backend %s", f.Path, dir)
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if token.IsExported(n.Name) && slices.Contains(backendWords, n.Name) {
					out.at(f, n.Pos(), "%s names the backend %s", f.Path, n.Name)
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && slices.Contains(backendWords, text) {
					out.at(f, n.Pos(), "%s names the backend %s", f.Path, text)
				}
			}
			return true
		})
	}
	return out.sorted()
}
