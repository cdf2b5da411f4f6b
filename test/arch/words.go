package arch

import (
	"bytes"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordRule lists what must not occur in a text file.
type wordRule struct {
	why string
	// words are looked for as they are; with fold set, in any case, and written
	// here in lower case.
	words []string
	fold  bool
	// whole means that no letter may stand next to the word.
	whole bool
}

// The words are put together from parts, so that this file does not break its
// own rule. They are searched for as bytes: a regular expression over the whole
// repository takes seconds under the race detector.
var wordRules = []wordRule{
	{why: "a path of one machine", words: []string{"/wo" + "rk/", "/ro" + "ot/", "/tmp/la" + "b/"}},
	{
		why: "the name of a package registry: clients know their own", fold: true,
		words: []string{"py" + "pi.org", "python" + "hosted.org", "proxy.go" + "lang.org", "gopro" + "xy.io", "gopro" + "xy.cn"},
	},
	{why: "work left undone: do it or leave it out", whole: true, words: []string{"TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"}},
	{
		why: "a filler word: say what is the case", fold: true, whole: true,
		words: []string{"robu" + "st", "robu" + "stly", "sim" + "ply", "basi" + "cally", "production-re" + "ady", "seam" + "less", "seam" + "lessly", "blaz" + "ing"},
	},
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
		lower := bytes.ToLower(f.Src)
		for _, r := range wordRules {
			text := f.Src
			if r.fold && len(lower) == len(f.Src) { // it grows with some letters
				text = lower
			}
			for _, w := range r.words {
				for _, at := range r.find(text, w) {
					line := 1 + bytes.Count(text[:at], []byte("\n"))
					out.list = append(out.list, Violation{Path: f.Path, Line: line, Message: "\"" + w + "\" is " + r.why})
				}
			}
		}
	}
	return out.sorted()
}

// find returns where word stands in text.
func (r wordRule) find(text []byte, word string) []int {
	var places []int
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(word))
		if i < 0 {
			return places
		}
		at := from + i
		from = at + len(word)
		if !r.whole || !letterBefore(text[:at]) && !letterAfter(text[from:]) {
			places = append(places, at)
		}
	}
}

func letterBefore(text []byte) bool {
	r, _ := utf8.DecodeLastRune(text)
	return unicode.IsLetter(r) || r == '_'
}

func letterAfter(text []byte) bool {
	r, _ := utf8.DecodeRune(text)
	return unicode.IsLetter(r) || r == '_'
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
