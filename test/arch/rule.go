package arch

import (
	"fmt"
	"go/token"
	"path"
	"sort"
	"strings"
)

// Rule is one property of the repository.
type Rule struct {
	// Name is short and stable: it names the subtest.
	Name string
	// Why is one sentence for the person whose change broke the rule.
	Why string
	// Check returns what breaks the rule.
	Check func(*Tree) []Violation
}

// Violation is one place where a rule is broken.
type Violation struct {
	Path string
	// Line is 0 when the whole file is meant.
	Line    int
	Message string
}

// String returns path:line: message.
func (v Violation) String() string {
	if v.Line == 0 {
		return v.Path + ": " + v.Message
	}
	return fmt.Sprintf("%s:%d: %s", v.Path, v.Line, v.Message)
}

// Rules returns all rules of the repository.
func Rules() []Rule {
	return []Rule{
		{"imports", "the floors of ARCHITECTURE.md have no circle; a new package needs a row in layers.go", checkImports},
		{"hollywood", "Hollywood's stop, request and restart code must never run: it loses messages or ends the process", checkHollywood},
		{"clock", "a strategy is a pure value: it has the time from its view, so that the same view and event give the same answer", checkClock},
		{"recover", "a panic is handled in one place, supervisor/guard.go, so that every one becomes a typed exit", checkRecover},
		{"package-doc", "doc.go says what a package guarantees and who may call it", checkPackageDoc},
		{"exported-doc", "everything exported is documented", checkExportedDoc},
		{"file-length", "a Go file over 400 lines, or one of Python over 600, has two reasons to change", checkFileLength},
		{"nouns", "one word, one meaning: these nouns are not ours", checkNouns},
		{"waits", "a test waits for what it expects, never for time to pass, and never hides itself", checkWaits},
		{"goroutine-leaks", "a package that starts goroutines proves that they end", checkGoroutineLeaks},
		{"words", "the repository speaks of itself alone, in plain sentences, and leaves nothing undone", checkWords},
		{"fuzz", "make fuzz finds every fuzz target", checkFuzz},
		{"backends", "a third backend touches its own folder and one file of the root, which asks the others by interface what they can do", checkBackends},
		{"map", "a map that names what is not there is worse than none", checkMap},
		{"examples", "what a host imports is shown in code that compiles", checkExamples},
	}
}

// found collects violations of one rule.
type found struct {
	tree *Tree
	list []Violation
}

func (f *found) at(file *File, pos token.Pos, format string, args ...any) {
	v := Violation{Path: file.Path, Message: fmt.Sprintf(format, args...)}
	if pos.IsValid() {
		v.Line = f.tree.Line(pos)
	}
	f.list = append(f.list, v)
}

func (f *found) sorted() []Violation {
	sort.SliceStable(f.list, func(i, j int) bool {
		if f.list[i].Path != f.list[j].Path {
			return f.list[i].Path < f.list[j].Path
		}
		return f.list[i].Line < f.list[j].Line
	})
	return f.list
}

// matches reports whether dir matches pattern: equal, or under a pattern that
// ends in /..., or as path.Match has it.
func matches(pattern, dir string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == base || strings.HasPrefix(dir, base+"/")
	}
	ok, err := path.Match(pattern, dir)
	return ok && err == nil
}

func matchesAny(patterns []string, dir string) bool {
	for _, p := range patterns {
		if matches(p, dir) {
			return true
		}
	}
	return false
}
