package reference

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// module is the path of the packages that are told of.
const module = "github.com/coppice-run/coppice"

// load reads the package in a folder of the tree of sources.
func load(sources fs.FS, dir string) (*doc.Package, *token.FileSet, error) {
	names, err := fs.Glob(sources, path.Join(dir, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return nil, nil, err
		}
		f, err := parser.ParseFile(set, name, text, parser.ParseComments)
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", name, err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(set, files, path.Join(module, dir), doc.PreserveAST)
	if err != nil {
		return nil, nil, fmt.Errorf("read the package %s: %w", dir, err)
	}
	return p, set, nil
}

// settings are types of which users set the fields, besides those named Options.
var settings = []string{"Limits", "Isolation", "Request", "Call"}

// Options is the page of what the packages in dirs can be told: the fields of their types
// for options, whose zero values are the defaults.
func Options(sources fs.FS, dirs []string) ([]byte, error) {
	p := newPage("Options of the library", "The fields of each type, and what they are when they are left out.")
	for _, dir := range dirs {
		pkg, set, err := load(sources, dir)
		if err != nil {
			return nil, err
		}
		for _, t := range pkg.Types {
			if !strings.HasSuffix(t.Name, "Options") && !slices.Contains(settings, t.Name) {
				continue
			}
			rows, err := fields(set, t)
			if err != nil {
				return nil, err
			}
			if len(rows) == 0 {
				continue
			}
			p.heading(2, pkg.Name+"."+t.Name)
			p.line(plain(t.Doc))
			p.line("")
			p.table([]string{"field", "type", "what it does"}, rows)
		}
	}
	return p.text(), nil
}

// fields are the exported fields of a struct, with what their comments say.
func fields(set *token.FileSet, t *doc.Type) ([][]string, error) {
	spec, ok := t.Decl.Specs[0].(*ast.TypeSpec)
	if !ok {
		return nil, nil
	}
	str, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil, nil
	}
	var rows [][]string
	about := ""
	for _, f := range str.Fields.List {
		var kind bytes.Buffer
		if err := printer.Fprint(&kind, set, f.Type); err != nil {
			return nil, fmt.Errorf("print the type of a field of %s: %w", t.Name, err)
		}
		switch {
		case f.Doc != nil:
			about = f.Doc.Text()
		case f.Comment != nil:
			about = f.Comment.Text()
		}
		for _, name := range f.Names {
			if name.IsExported() {
				rows = append(rows, []string{code(name.Name), code(strings.Join(strings.Fields(kind.String()), " ")), plain(about)})
			}
		}
	}
	return rows, nil
}

// Errors is the page of the errors that the packages in dirs return, on which programs
// make decisions, with what they mean.
func Errors(sources fs.FS, dirs []string) ([]byte, error) {
	p := newPage("Errors", "Values are compared with `errors.Is`, types with `errors.As`; each says in its text what was attempted, and most the next step.")
	for _, dir := range dirs {
		pkg, _, err := load(sources, dir)
		if err != nil {
			return nil, err
		}
		var rows [][]string
		for _, v := range pkg.Vars {
			rows = append(rows, values(v)...)
		}
		for _, t := range pkg.Types {
			for _, v := range t.Vars {
				rows = append(rows, values(v)...)
			}
			if strings.HasSuffix(t.Name, "Error") && slices.ContainsFunc(t.Methods, func(f *doc.Func) bool { return f.Name == "Error" }) {
				rows = append(rows, []string{code("*" + t.Name), plain(t.Doc)})
			}
		}
		if len(rows) == 0 {
			continue
		}
		p.heading(2, "Package "+pkg.Name)
		p.table([]string{"error", "when"}, rows)
	}
	return p.text(), nil
}

// values are the errors among variables.
func values(v *doc.Value) [][]string {
	var rows [][]string
	for _, s := range v.Decl.Specs {
		spec, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		about := v.Doc
		switch {
		case spec.Doc != nil:
			about = spec.Doc.Text()
		case spec.Comment != nil:
			about = spec.Comment.Text()
		}
		for _, name := range spec.Names {
			if strings.HasPrefix(name.Name, "Err") {
				rows = append(rows, []string{code(name.Name), plain(about)})
			}
		}
	}
	return rows
}
