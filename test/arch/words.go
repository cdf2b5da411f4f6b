package arch

import (
	"bytes"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// wordRule is a pattern that must not occur in a text file.
type wordRule struct {
	pattern *regexp.Regexp
	why     string
}

// The patterns are put together from parts, so that this file does not break
// its own rule.
var wordRules = []wordRule{
	{regexp.MustCompile(`/(?:wo` + `rk|ro` + `ot|tmp/la` + `b)/`), "a path of one machine"},
	{regexp.MustCompile(`(?i)py` + `pi\.org|python` + `hosted\.org|proxy\.go` + `lang\.org|goproxy\.(?:io|cn)`), "the name of a package registry: clients know their own"},
	{regexp.MustCompile(`\b(?:TO` + `DO|FIX` + `ME|X` + `XX|HA` + `CK)\b`), "work left undone: do it or leave it out"},
	{regexp.MustCompile(`(?i)\b(?:robu` + `st(?:ly)?|sim` + `ply|basi` + `cally|production-re` + `ady|seam` + `less(?:ly)?|blaz` + `ing)\b`), "a filler word: say what is the case"},
}

// wordsAllowed names files that quote what they must not say, with the reason.
var wordsAllowed = map[string]string{
	"LICENSE": "it is quoted as it is",
}

func checkWords(t *Tree) []Violation {
	out := found{tree: t}
	for _, f := range t.Files {
		if wordsAllowed[f.Path] != "" {
			continue
		}
		for i, line := range bytes.Split(f.Src, []byte("\n")) {
			for _, r := range wordRules {
				if m := r.pattern.Find(line); m != nil {
					out.list = append(out.list, Violation{Path: f.Path, Line: i + 1, Message: "\"" + string(m) + "\" is " + r.why})
				}
			}
		}
	}
	return out.sorted()
}

// fuzzLine is what the Makefile searches for: it has no Go parser.
var fuzzLine = regexp.MustCompile(`(?m)^func (Fuzz[A-Za-z0-9_]+)\(f \*testing\.F\)`)

// FuzzPattern is the basic regular expression by which the Makefile finds fuzz
// targets.
const FuzzPattern = `^func Fuzz[A-Za-z0-9_]*(f \*testing\.F)`

// checkFuzz compares what Go calls a fuzz target with what the Makefile finds.
func checkFuzz(t *Tree) []Violation {
	out := found{tree: t}
	if mk := t.File("Makefile"); mk != nil && !bytes.Contains(mk.Src, []byte(FuzzPattern)) {
		out.at(mk, token.NoPos, "the fuzz target does not search for %s", FuzzPattern)
	}
	for _, f := range t.Go() {
		if !f.IsTest() {
			continue
		}
		seen := map[string]bool{}
		for _, m := range fuzzLine.FindAllSubmatch(f.Src, -1) {
			seen[string(m[1])] = true
		}
		for _, decl := range f.AST.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && isFuzz(d) && !seen[d.Name.Name] {
				out.at(f, d.Pos(), "make fuzz does not find %s: write it as func %s(f *testing.F)", d.Name.Name, d.Name.Name)
			}
		}
	}
	return out.sorted()
}

func isFuzz(d *ast.FuncDecl) bool {
	return d.Recv == nil && strings.HasPrefix(d.Name.Name, "Fuzz") && d.Type.Params.NumFields() == 1
}

// checkExamples wants examples of the package that hosts import.
func checkExamples(t *Tree) []Violation {
	var facade *File
	for _, f := range t.Go() {
		if f.Dir() != "." {
			continue
		}
		if facade == nil {
			facade = f
		}
		for _, decl := range f.AST.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && f.IsTest() && strings.HasPrefix(d.Name.Name, "Example") {
				return nil
			}
		}
	}
	if facade == nil {
		return nil
	}
	return []Violation{{Path: facade.Path, Message: "package coppice has no Example function"}}
}
