package arch

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// checkPackageDoc wants the package comment in doc.go. A command, and a package
// with one file besides its tests, may have it anywhere.
func checkPackageDoc(t *Tree) []Violation {
	out := found{tree: t}
	type pkg struct {
		first                *File
		main, comment, inDoc bool
		code                 int // files besides tests
	}
	pkgs := map[string]*pkg{}
	for _, f := range t.Go() {
		p := pkgs[f.Dir()]
		if p == nil {
			p = &pkg{first: f}
			pkgs[f.Dir()] = p
		}
		p.main = p.main || f.AST.Name.Name == "main"
		if !f.IsTest() {
			p.code++
		}
		if f.AST.Doc != nil {
			text := f.AST.Doc.Text()
			if isPackageComment(text, f.AST.Name.Name) || p.main && strings.HasPrefix(text, "Command ") {
				p.comment = true
				p.inDoc = p.inDoc || strings.HasSuffix(f.Path, "doc.go")
			}
		}
	}
	for dir, p := range pkgs {
		switch {
		case !p.comment:
			out.at(p.first, token.NoPos, "package %s has no package comment", dir)
		case p.code > 1 && !p.main && !p.inDoc:
			out.at(p.first, token.NoPos, "the package comment of %s is not in doc.go", dir)
		}
	}
	return out.sorted()
}

func isPackageComment(text, name string) bool {
	return strings.HasPrefix(text, "Package "+name+" ") || strings.HasPrefix(text, "Package "+strings.TrimSuffix(name, "_test")+" ")
}

// checkExportedDoc wants a comment at everything exported outside tests and
// commands. A group may share one.
func checkExportedDoc(t *Tree) []Violation {
	out := found{tree: t}
	for _, f := range t.Go() {
		if f.IsTest() || f.AST.Name.Name == "main" {
			continue
		}
		for _, decl := range f.AST.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
					out.at(f, d.Pos(), "exported %s has no comment", d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					for _, name := range undocumented(d, spec) {
						out.at(f, name.Pos(), "exported %s has no comment", name.Name)
					}
				}
			}
		}
	}
	return out.sorted()
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

func undocumented(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Doc == nil && s.Comment == nil && d.Doc == nil && s.Name.IsExported() {
			names = append(names, s.Name)
		}
	case *ast.ValueSpec:
		if s.Doc != nil || s.Comment != nil || d.Doc != nil {
			return nil
		}
		for _, n := range s.Names {
			if n.IsExported() {
				names = append(names, n)
			}
		}
	}
	return names
}

// maxLines is how long a file may be, by the end of its name; tests are no exception.
var maxLines = map[string]int{".go": 400, ".py": 600}

func checkFileLength(t *Tree) []Violation {
	out := found{tree: t}
	for _, f := range t.Files {
		most, ok := maxLines[path.Ext(f.Path)]
		if n := f.Lines(); ok && n > most {
			out.at(f, token.NoPos, "%d lines: at most %d", n, most)
		}
	}
	return out.sorted()
}

// foreignNouns would be further words for what already has one.
var foreignNouns = regexp.MustCompile(`(?i)(worker|executor|manager|engine|door)`)

func checkNouns(t *Tree) []Violation {
	out := found{tree: t}
	for _, f := range t.Go() {
		for _, decl := range f.AST.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && foreignNouns.MatchString(s.Name.Name) {
					out.at(f, s.Name.Pos(), "type %s: say which thing of ours it is", s.Name.Name)
				}
			}
		}
	}
	return out.sorted()
}
