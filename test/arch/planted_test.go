package arch_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/arch"
)

// sound is a small repository that every rule accepts; the cases below plant
// one file more.
var sound = map[string]string{
	"Makefile":             "fuzz:\n\tgrep '" + arch.FuzzPattern + "'\n",
	"doc.go":               "// Package coppice is a room.\npackage coppice\n",
	"example_test.go":      "package coppice_test\n\nfunc ExampleStart() {}\n",
	"messages/doc.go":      "// Package messages has words.\npackage messages\n",
	"supervisor/doc.go":    "// Package supervisor watches.\npackage supervisor\n\nimport \"" + arch.Module + "/messages\"\n\nvar _ messages.X\n",
	"supervisor/guard.go":  "package supervisor\n\nfunc guard() { defer func() { _ = recover() }() }\n",
	"cmd/coppice/main.go":  "// Command coppice is a program.\npackage main\n\nfunc main() {}\n",
	"actors/gateway/of.go": "package gateway\n\nimport _ \"" + arch.Module + "/supervisor\"\n",
	// Comments stand where doc.go would.
	"actors/gateway/doc.go": "// Package gateway is a room.\npackage gateway\n",
}

const hollywoodImport = "import \"github.com/anthdm/hollywood/actor\"\n"

// TestPlanted breaks every rule, each in the ways it can be broken.
func TestPlanted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule, path, src string
		// want is part of the violation; "" wants none.
		want string
	}{
		{"imports", "attic/x.go", "package attic\n", "attic has no row"},
		{"imports", "messages/x.go", "package messages\n\nimport _ \"" + arch.Module + "/supervisor\"\n", "messages may not import supervisor"},
		{"imports", "notebook/x.go", "package notebook\n\nimport _ \"" + arch.Module + "/messages\"\n", "notebook may not import messages"},
		{"imports", "supervisor/x.go", "package supervisor\n\nimport _ \"" + arch.Module + "/actors/kernel\"\n", "may not import actors/kernel"},
		{"imports", "supervisor/x.go", "package supervisor\n\nimport _ \"os/exec\"\n", "os/exec stays out"},
		{"imports", "supervisor/strategy/x.go", "package strategy\n\nimport _ \"" + arch.Module + "/supervisor\"\n", "supervisor/strategy may not import supervisor"},
		{"imports", "supervisor/strategy/x.go", "package strategy\n\nimport _ \"sync/atomic\"\n", "sync/atomic stays out"},
		{"imports", "supervisor/strategy/x.go", "package strategy\n\n" + hollywoodImport, "may not import github.com/anthdm/hollywood/actor"},
		{"clock", "supervisor/strategy/x.go", "package strategy\n\nvar began = time.Now()\n", "time.Now in supervisor/strategy"},
		{"clock", "supervisor/strategy/x.go", "package strategy\n\nvar late = time.Until(began)\n", "time.Until in supervisor/strategy"},
		{"clock", "supervisor/strategy/x.go", "package strategy\n\nvar patience = 3 * time.Second\n", ""},
		{"clock", "supervisor/x.go", "package supervisor\n\nvar began = time.Now()\n", ""},
		{"imports", "sinks/live/x.go", "package live\n\nimport _ \"" + arch.Module + "/notebook\"\n", "may not import notebook"},
		{"imports", "sinks/ipynb/x.go", "package ipynb\n\nimport _ \"" + arch.Module + "/notebook\"\n", ""},
		{"imports", "actors/gateway/x.go", "package gateway\n\nimport _ \"" + arch.Module + "/actors/kernel\"\n", "may not import actors/kernel"},
		{"imports", "actors/gateway/x.go", "package gateway\n\nimport _ \"encoding/json\"\n", "encoding/json stays out"},
		{"imports", "actors/gateway/x.go", "package gateway\n\nimport _ \"net/http\"\n", "net/http stays out"},
		{"imports", "actors/gateway/x_test.go", "package gateway\n\nimport _ \"encoding/json\"\n", ""},
		{"imports", "actors/kernel/x.go", "package kernel\n\nimport _ \"net\"\n", "net stays out"},
		{"imports", "actors/kernel/x.go", "package kernel\n\nimport _ \"" + arch.Module + "\"\n", "may not import ."},
		{"imports", "actors/kernel/runner/x.go", "package runner\n\nimport _ \"" + arch.Module + "/actors/kernel\"\n", ""},
		{"imports", "actors/kernel/runner/x.go", "package runner\n\nimport _ \"" + arch.Module + "/actors/kernel/jupyter\"\n", "may not import actors/kernel/jupyter"},
		{"imports", "internal/ndjson/x.go", "package ndjson\n\n" + hollywoodImport, "may not import github.com/anthdm/hollywood/actor"},
		{"imports", "internal/ndjson/x.go", "package ndjson\n\nimport _ \"github.com/gorilla/websocket\"\n", "may not import github.com/gorilla/websocket"},
		{"imports", "internal/jupyter/x.go", "package jupyter\n\nimport _ \"github.com/gorilla/websocket\"\n", ""},
		{"imports", "internal/jupyter/x.go", "package jupyter\n\nimport _ \"" + arch.Module + "/supervisor\"\n", "may not import supervisor"},
		{"imports", "coppice.go", "package coppice\n\nimport _ \"" + arch.Module + "/internal/pyenv\"\n", ""},
		{"imports", "coppice.go", "package coppice\n\nimport _ \"github.com/spf13/cobra\"\n", "may not import github.com/spf13/cobra"},
		{"imports", "coppice.go", "package coppice\n\nimport _ \"" + arch.Module + "/test/fakegateway\"\n", "may not import test/fakegateway"},
		{"imports", "coppice_test.go", "package coppice\n\nimport _ \"" + arch.Module + "/test/fakegateway\"\n", ""},
		{"imports", "cmd/internal/cli/x.go", "package cli\n\nimport _ \"" + arch.Module + "/supervisor\"\n", "may not import supervisor"},
		{"imports", "cmd/internal/cli/x.go", "package cli\n\nimport _ \"" + arch.Module + "\"\n", ""},
		{"imports", "messages/x_test.go", "package messages\n\nimport _ \"github.com/stretchr/testify/assert\"\n", "testify/assert"},
		{"imports", "messages/x_test.go", "package messages\n\nimport _ \"github.com/stretchr/testify/require\"\n", ""},
		{"imports", "messages/x.go", "package messages\n\nimport _ \"github.com/stretchr/testify/require\"\n", "testify/require"},

		{"hollywood", "sinks/x.go", "package sinks\n\n" + hollywoodImport + "func f(e *actor.Engine) { e.Poison(nil) }\n", "Poison of Hollywood is forbidden"},
		{"hollywood", "sinks/x.go", "package sinks\n\n" + hollywoodImport + "func f(e *actor.Engine) { e.Request(nil, 1, 2) }\n", "Request of Hollywood is forbidden"},
		{"hollywood", "sinks/x.go", "package sinks\n\n" + hollywoodImport + "func f(c *actor.Context) { c.Children() }\n", "for package supervisor alone"},
		{"hollywood", "sinks/x.go", "package sinks\n\n" + hollywoodImport + "var _ = actor.WithMaxRestarts(-1)\n", "for package supervisor alone"},
		{"hollywood", "supervisor/x.go", "package supervisor\n\n" + hollywoodImport + "var _ = actor.WithMaxRestarts(3)\n", "takes -1"},
		{"hollywood", "supervisor/x.go", "package supervisor\n\n" + hollywoodImport + "var _ = actor.WithMaxRestarts(-1)\n", ""},
		{"hollywood", "supervisor/x.go", "package supervisor\n\n" + hollywoodImport + "func f(e *actor.Engine) { e.Poison(nil) }\n", "Poison of Hollywood is forbidden"},
		{"hollywood", "supervisor/x_test.go", "package supervisor\n\n" + hollywoodImport + "func f(e *actor.Engine) { e.Poison(nil) }\n", ""},
		{"hollywood", "actors/gateway/x.go", "package gateway\n\nfunc f(s interface{ Children() int }) { s.Children() }\n", ""},

		{"recover", "sinks/x.go", "package sinks\n\nfunc f() { defer func() { recover() }() }\n", "outside supervisor/guard.go"},
		{"recover", "sinks/x.go", "package sinks\n\nfunc (s S) recover() { s.recover() }\n", ""},

		{"map", "ARCHITECTURE.md", "| a | `nowhere/gone.go` |\n", "names nowhere/gone.go, which is not there"},
		{"map", "ARCHITECTURE.md", "| a | `ARCHITECTURE.md`, package `sinks/audit` |\n", ""},
		{"map", "ARCHITECTURE.md", "| `a` | x |\n| `b`, `a` | y |\n", "has a second row about a; the first is in line 1"},
		{"map", "ARCHITECTURE.md", "| `a` | `b` |\n| `b` | `a` |\n\n| `a` | in another table |\n", ""},

		{"backends", "host.go", "package coppice\n\nimport _ \"" + arch.Module + "/actors/kernel/runner\"\n", "imports the backend actors/kernel/runner"},
		{"backends", "host.go", "package coppice\n\nvar _ = Runner(nil)\n", "names the backend Runner"},
		{"backends", "host.go", "package coppice\n\nfunc f(b Backend) bool { return b.Name() == \"gateway\" }\n", "names the backend gateway"},
		{"backends", "backend.go", "package coppice\n\nvar _ = Runner(RunnerOptions{})\n", ""},
		{"backends", "cmd/x/x.go", "package x\n\nvar _ = Runner(RunnerOptions{})\n", ""},

		{"package-doc", "sinks/x.go", "package sinks\n", "sinks has no package comment"},
		{"package-doc", "sinks/x.go", "// Package sinks takes output.\npackage sinks\n", ""},
		{"package-doc", "sinks/x.go", "// Package other takes output.\npackage sinks\n", "no package comment"},
		{"package-doc", "cmd/other/main.go", "// Command other does.\npackage main\n", ""},
		{"package-doc", "cmd/other/main.go", "package main\n", "no package comment"},
		{"package-doc", "test/chaos/x_test.go", "// Package chaos_test breaks things.\npackage chaos_test\n", ""},
		{"package-doc", "test/chaos/x_test.go", "// Package chaos breaks things.\npackage chaos_test\n", ""},

		{"exported-doc", "messages/x.go", "package messages\n\nfunc F() {}\n", "exported F"},
		{"exported-doc", "messages/x.go", "package messages\n\ntype T struct{}\n", "exported T"},
		{"exported-doc", "messages/x.go", "package messages\n\n// T is.\ntype T[V any] struct{}\n\nfunc (t *T[V]) M() {}\n", "exported M"},
		{"exported-doc", "messages/x.go", "package messages\n\ntype t struct{}\n\nfunc (t *t) M() {}\n", ""},
		{"exported-doc", "messages/x.go", "package messages\n\nconst C = 1\n", "exported C"},
		{"exported-doc", "messages/x.go", "package messages\n\n// The numbers.\nconst (\n\tC = 1\n\tD = 2\n)\n", ""},
		{"exported-doc", "messages/x.go", "package messages\n\nvar V int\n", "exported V"},
		{"exported-doc", "messages/x.go", "package messages\n\n// Both are.\ntype (\n\tT = int\n\tU = int\n)\n", ""},
		{"exported-doc", "messages/x_test.go", "package messages\n\nfunc F() {}\n", ""},

		{"file-length", "messages/x.go", "package messages\n" + strings.Repeat("\n", 400), "401 lines: at most 400"},
		{"file-length", "messages/x_test.go", "package messages\n" + strings.Repeat("\n", 400), "401 lines"},
		{"file-length", "messages/x.go", "package messages\n" + strings.Repeat("\n", 399), ""},
		{"file-length", "internal/pysrc/x.py", strings.Repeat("pass\n", 601), "601 lines"},
		{"file-length", "internal/pysrc/x.py", strings.Repeat("pass\n", 600), ""},

		{"nouns", "sinks/x.go", "package sinks\n\ntype slowDoor struct{}\n", "type slowDoor"},
		{"nouns", "messages/x.go", "package messages\n\ntype cellExecutor struct{}\n", "cellExecutor"},
		{"nouns", "messages/x.go", "package messages\n\ntype Manager struct{}\n", "Manager"},

		{"waits", "messages/x_test.go", "package messages\n\nfunc f() { time.Sleep(1) }\n", "time.Sleep"},
		{"waits", "messages/x.go", "package messages\n\nfunc f() { time.Sleep(1) }\n", "time.Sleep"},
		{"waits", "messages/x_test.go", "package messages\n\nfunc f(t T) { synctest.Test(t, func(t T) { time.Sleep(1) }) }\n", ""},
		{"waits", "messages/x_test.go", "package messages\n\nfunc in(f func()) { synctest.Test(f) }\n\nfunc f() { in(func() { time.Sleep(1) }) }\n", ""},
		{"waits", "messages/x_test.go", "package messages\n\nfunc in(f func()) { f() }\n\nfunc f() { in(func() { time.Sleep(1) }) }\n", "time.Sleep"},
		{"waits", "messages/x_test.go", "package messages\n\nfunc in(f func()) { synctest.Test(f) }\n\nfunc f() { time.Sleep(1) }\n", "time.Sleep"},
		{"waits", "messages/x_test.go", "package messages\n\nimport \"testing/synctest\"\n\nfunc step() { time.Sleep(1) }\n", ""},
		{"waits", "messages/x_test.go", "package messages\n\nimport \"testing/synctest\"\n\nfunc TestX() { time.Sleep(1) }\n", "time.Sleep"},
		{"waits", "messages/x_test.go", "package messages\n\nfunc TestX(t *testing.T) { t.Skip(1) }\n", "Skip hides a test"},
		{"waits", "messages/x_test.go", "package messages\n\nfunc f(x testing.TB) { x.Skipf(1) }\n", "Skipf hides a test"},
		{"waits", "messages/x_test.go", "package messages\n\nfunc TestX(t *testing.T) { if noPython { t.SkipNow() } }\n", "SkipNow hides a test"},
		{"waits", "messages/x_test.go", "package messages\n\nfunc TestX(t *testing.T) { if runtime.GOOS == \"windows\" { t.Skip(1) } }\n", ""},
		{"waits", "messages/x_test.go", "package messages\n\nfunc TestX(t *testing.T) { if runtime.GOOS == \"windows\" { return }; t.Skip(1) }\n", "Skip hides a test"},
		{"waits", "messages/x_test.go", "package messages\n\nfunc TestX(t *testing.T) { rapid.Check(t, func(t *rapid.T) { t.Skip(1) }) }\n", ""},
		{"waits", "messages/x_test.go", "package messages\n\nfunc FuzzX(f *testing.F) { f.Fuzz(func(t *testing.T, s string) { t.Skip(1) }) }\n", ""},

		{"goroutine-leaks", "messages/x.go", "package messages\n\nfunc f() { go f() }\n", "messages starts goroutines"},
		{"goroutine-leaks", "messages/x_test.go", "package messages\n\nfunc f() { go f() }\n", ""},

		{"words", "README.md", "see /wo" + "rk/main\n", "a path of one machine"},
		{"words", "README.md", "from py" + "pi.org\n", "package registry"},
		{"words", "messages/x.go", "package messages\n\n// TO" + "DO later\n", "work left undone"},
		{"words", "README.md", "a robu" + "st thing\n", "filler word"},
		{"words", "README.md", "Sim" + "ply so\n", "filler word"},
		{"words", "README.md", "from PyPI" + ".ORG\n", "package registry"},
		{"words", "README.md", "roots and works, hacks and HACKING, simplify\n", ""},

		{"fuzz", "messages/x_test.go", "package messages\n\nfunc FuzzX(x *testing.F) {}\n", "make fuzz does not find FuzzX"},
		{"fuzz", "messages/x_test.go", "package messages\n\nfunc FuzzX(f *testing.F) {}\n", ""},
		{"fuzz", "Makefile", "fuzz:\n\techo none\n", "does not search for"},

		{"examples", "example_test.go", "package coppice_test\n", "no Example function"},
	}
	broken := map[string]bool{}
	for _, tt := range tests {
		broken[tt.rule] = broken[tt.rule] || tt.want != ""
	}
	for _, rule := range arch.Rules() {
		require.True(t, broken[rule.Name], "rule %s has a planted violation", rule.Name)
		require.NotEmpty(t, rule.Why)
	}
	for _, tt := range tests {
		t.Run(tt.rule+"/"+tt.path, func(t *testing.T) {
			t.Parallel()
			got := check(t, tt.rule, with(tt.path, tt.src))
			if tt.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0].String(), tt.want)
			if tt.rule != "examples" { // what is missing has no file
				require.True(t, strings.HasPrefix(got[0].String(), tt.path), "%s names the file", got[0])
			}
		})
	}
}

// TestSound shows that the rules accept what is right.
func TestSound(t *testing.T) {
	t.Parallel()
	for _, rule := range arch.Rules() {
		require.Empty(t, check(t, rule.Name, with("", "")), rule.Name)
	}
}

// TestPackageDocPlace wants the comment of a package with two files in doc.go.
func TestPackageDocPlace(t *testing.T) {
	t.Parallel()
	sources := with("sinks/x.go", "// Package sinks takes output.\npackage sinks\n")
	sources["sinks/x_test.go"] = []byte("package sinks\n")
	require.Empty(t, check(t, "package-doc", sources))
	sources["sinks/y.go"] = []byte("package sinks\n")
	require.Len(t, check(t, "package-doc", sources), 1)
	sources["sinks/doc.go"] = []byte("// Package sinks takes output.\npackage sinks\n")
	require.Empty(t, check(t, "package-doc", sources))
}

// TestGoroutineLeaksProved wants the proof and the goroutine in one package.
func TestGoroutineLeaksProved(t *testing.T) {
	t.Parallel()
	sources := with("messages/x.go", "package messages\n\nfunc f() { go f() }\n")
	proof := "import \"go.uber.org/goleak\"\n\nfunc TestMain(m *testing.M) { goleak.VerifyTestMain(m) }\n"
	sources["sinks/main_test.go"] = []byte("package sinks\n\n" + proof)
	require.Len(t, check(t, "goroutine-leaks", sources), 1)
	sources["messages/main_test.go"] = []byte("package messages\n\n" + proof)
	require.Empty(t, check(t, "goroutine-leaks", sources))
}

func with(path, src string) map[string][]byte {
	sources := map[string][]byte{}
	for name, text := range sound {
		sources[name] = []byte(text)
	}
	if path != "" {
		sources[path] = []byte(src)
	}
	return sources
}

func check(t *testing.T, name string, sources map[string][]byte) []arch.Violation {
	t.Helper()
	tree, err := arch.Parse(sources)
	require.NoError(t, err)
	for _, rule := range arch.Rules() {
		if rule.Name == name {
			return rule.Check(tree)
		}
	}
	require.Fail(t, "no such rule", name)
	return nil
}
