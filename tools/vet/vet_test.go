package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// planted is a module with one mistake of each kind that has to be found, by file. What is
// right in it must not be.
var planted = map[string]string{
	"go.mod": "module example.com/planted\n\ngo 1.26\n",
	"say/say.go": `// Package say prints.
package say

import "fmt"

func Sayf(format string, args ...any) string { return fmt.Sprintf(format, args...) }
`,
	"types/type_windows.go": "package types\n\nvar Number int = \"text\"\n",
	"types/types.go":        "package types\n",
	"wrapped/wrapped_windows.go": `package wrapped

import "example.com/planted/say"

func Wrapped() string { return say.Sayf("%d", "text") }
`,
	"wrapped/wrapped.go": "package wrapped\n",
	"copies/copies.go": `package copies

import "sync"

func Copies(m sync.Mutex) {}
`,
	"leaks/leaks_darwin.go": `package leaks

import "context"

func Leaks() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	if ctx.Err() == nil {
		cancel()
	}
	return ctx
}
`,
	"leaks/leaks.go": "package leaks\n",
	"tests/in_darwin_test.go": `package tests

import "testing"

func TestIn(t *testing.T) { t.Errorf("%d", "text") }
`,
	"tests/out_darwin_test.go": `package tests_test

import "testing"

func TestOut(t *testing.T) { t.Fatalf("%s", 1) }

func TestlowerCase(t *testing.T) {}
`,
	"tests/tests.go": "package tests\n",
	"tags/late.go": `package tags

//go:build darwin

func Late() {}
`,
	"tags/ignored.go": `//go:build plan9
// +build solaris

package tags
`,
	"tests/type_windows_test.go": `package tests

import "testing"

func TestType(t *testing.T) { var _ int = "text" }
`,
}

// TestFindsWhatGoVetFinds holds the findings against those of go vet, in a module that has
// mistakes of each kind for one system or for both.
func TestFindsWhatGoVetFinds(t *testing.T) {
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			compare(t, plant(t, planted), system)
		})
	}
}

// plant makes a module of these files, and returns its folder.
func plant(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compare wants the same findings of both.
func compare(t *testing.T, dir, system string) {
	t.Helper()
	got, err := look(t.Context(), dir, system)
	if err != nil {
		t.Fatal(err)
	}
	want := goVet(t, dir, system)
	if !slices.Equal(got, want) {
		t.Errorf("found:\n%s\ngo vet:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	t.Logf("both find:\n%s", strings.Join(want, "\n"))
}

// goVet is what go vet finds.
func goVet(t *testing.T, dir, system string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "vet", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("go vet finds nothing")
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "vet: "), "./")
		if line != "" && !strings.HasPrefix(line, "#") {
			found = append(found, line)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestTellsOfAConstraintThatCannotBeRead is apart, since go vet looks at nothing else then.
func TestTellsOfAConstraintThatCannotBeRead(t *testing.T) {
	dir := plant(t, map[string]string{
		"go.mod":   "module example.com/planted\n\ngo 1.26\n",
		"other.go": "package planted\n", "tag.go": "//go:build darwin &&\n\npackage planted\n",
	})
	compare(t, dir, "darwin")
}

// TestSuiteIsThatOfGoVet looks whether the Go in use has analyzers that are missing here.
func TestSuiteIsThatOfGoVet(t *testing.T) {
	if err := complete(t.Context(), "."); err != nil {
		t.Fatal(err)
	}
	if _, err := registered("something else"); err == nil {
		t.Fatal("what go vet does not say was understood")
	}
}
