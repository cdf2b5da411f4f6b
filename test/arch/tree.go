package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Module is the import path of the module whose shape is checked.
const Module = "github.com/coppice-run/coppice"

// File is one text file of the repository.
type File struct {
	// Path is relative to the repository's root, with slashes.
	Path string
	// Src is the content.
	Src []byte
	// AST is set for Go files of the module, those under testdata excepted.
	AST *ast.File
}

// Dir returns the folder of the file, "." for the root.
func (f *File) Dir() string { return path.Dir(f.Path) }

// IsTest reports whether the file is a _test.go file.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Lines returns the number of lines.
func (f *File) Lines() int { return bytes.Count(f.Src, []byte("\n")) }

// Imports returns the import paths of a Go file with their positions.
func (f *File) Imports() map[string]token.Pos {
	imports := make(map[string]token.Pos, len(f.AST.Imports))
	for _, spec := range f.AST.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			imports[p] = spec.Pos()
		}
	}
	return imports
}

// Tree is the repository as the rules see it.
type Tree struct {
	// Fset resolves the positions of every AST.
	Fset *token.FileSet
	// Files is sorted by path.
	Files []*File
}

// Go returns the Go files of the module, sorted by path.
func (t *Tree) Go() []*File {
	var files []*File
	for _, f := range t.Files {
		if f.AST != nil {
			files = append(files, f)
		}
	}
	return files
}

// File returns the file at path, or nil.
func (t *Tree) File(name string) *File {
	i := sort.Search(len(t.Files), func(i int) bool { return t.Files[i].Path >= name })
	if i < len(t.Files) && t.Files[i].Path == name {
		return t.Files[i]
	}
	return nil
}

// Line returns the line of a position.
func (t *Tree) Line(pos token.Pos) int { return t.Fset.Position(pos).Line }

// textFiles says by name or extension which files besides Go are read.
var textFiles = map[string]bool{
	".go": true, ".py": true, ".md": true, ".sh": true, ".txtar": true, ".yml": true, ".toml": true, ".json": true,
	".golden": true, ".txt": true, "Makefile": true, "run": true, ".editorconfig": true, ".gitattributes": true,
	".gitignore": true,
}

func isText(name string) bool { return textFiles[path.Ext(name)] || textFiles[path.Base(name)] }

// skippedDirs are not part of the repository or made by the tools.
var skippedDirs = map[string]bool{".git": true, ".cache": true, "bin": true, "dist": true, "__pycache__": true, ".venv": true}

// generated is the line of Go code that a program has made, before its package clause, see
// `go help generate`. The rules are for those who write.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func isGenerated(name string, src []byte) bool {
	head, _, _ := bytes.Cut(src, []byte("\npackage "))
	return strings.HasSuffix(name, ".go") && generated.Match(head)
}

// Load reads the repository at root, without generated code. A folder with a go.mod of its own is
// another module: its Go files are left out.
func Load(root string) (*Tree, error) {
	sources := map[string][]byte{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != root && (skippedDirs[d.Name()] || isModule(p)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !isText(d.Name()) {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if isGenerated(p, src) {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		sources[filepath.ToSlash(rel)] = src
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the repository: %w", err)
	}
	return Parse(sources)
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// Parse makes a tree of files that are given as path and content.
func Parse(sources map[string][]byte) (*Tree, error) {
	t := &Tree{Fset: token.NewFileSet()}
	for name, src := range sources {
		f := &File{Path: name, Src: src}
		if strings.HasSuffix(name, ".go") && !strings.Contains("/"+name, "/testdata/") {
			parsed, err := parser.ParseFile(t.Fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("parse %s: %w", name, err)
			}
			f.AST = parsed
		}
		t.Files = append(t.Files, f)
	}
	sort.Slice(t.Files, func(i, j int) bool { return t.Files[i].Path < t.Files[j].Path })
	return t, nil
}
