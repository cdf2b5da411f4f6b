package coppice_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/gobuild"
	"github.com/coppice-run/coppice/test/testpython"
)

// readmeNames are what the Go blocks of the documents take for granted.
const readmeNames = `package readme

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/agent/selfref"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

var (
	_ client.Session
	_ = strings.NewReader
	_ = fmt.Println
	_ time.Duration
	_ messages.Cell
	_ agent.Tool
	_ hibernate.Report

	ctx           context.Context
	args          json.RawMessage // those of a tool, by both names
	arguments     json.RawMessage
	search        func(context.Context, struct{ Query string }) (string, error)
	notes         primitive.Pack
	conversations selfref.Store
	runAgent      func(context.Context, coppice.AgentFork) (selfref.Answer, error)
)
`

// documents are what a user reads.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	below, err := filepath.Glob("docs/*/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	texts := map[string]string{}
	for _, name := range append(append(names, below...), "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "clients/jupyter/README.md", "clients/python/README.md", "clients/typescript/README.md") {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		texts[name] = string(text)
	}
	return texts
}

// TestReadmeCompiles compiles every Go block of README.md and docs: statements as the
// body of a function that returns an error, a literal as a value.
func TestReadmeCompiles(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(readmeNames)
	var blocks []string
	texts := documents(t)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if name == "README.md" || strings.HasPrefix(name, "docs/") {
			blocks = append(blocks, strings.Split(texts[name], "\n```go\n")[1:]...)
		}
	}
	require.NotEmpty(t, blocks)
	for i, block := range blocks {
		code, _, ended := strings.Cut(block, "\n```\n")
		require.True(t, ended, code)
		if strings.HasPrefix(code, "coppice.Options{") {
			b.WriteString("\nvar _ = " + code + "\n")
			continue
		}
		b.WriteString("\nfunc block" + strconv.Itoa(i) + "() error {\n" + code + "\n")
		if strings.Contains(code, "result, err :=") {
			b.WriteString("_ = result\n") // which the reader uses
		}
		b.WriteString("return err\n}\n")
	}
	file := filepath.Join(t.TempDir(), "readme.go")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", append(append([]string{"vet"}, gobuild.Flags()...), file)...).CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, b.String())
}

// TestLinksLeadSomewhere follows the links of the documents that stay in the repository, to the
// heading that they name.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)]*))?\)|(?:src|srcset)="([^"]+)"`)
	found, texts := 0, documents(t)
	for name, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to := m[1] + m[3]
			if strings.Contains(to, "://") {
				continue
			}
			found++
			path := name
			if to != "" {
				path = filepath.Join(filepath.Dir(name), to)
				require.FileExists(t, path, name)
			}
			if target, is := texts[filepath.ToSlash(path)]; m[2] != "" && is {
				require.Contains(t, anchors(target), m[2], "%s links to %s", name, m[0])
			}
		}
	}
	require.Positive(t, found)
}

// anchors are the names by which the headings of a document can be linked to.
func anchors(text string) []string {
	heading, no := regexp.MustCompile("(?m)^#+ +(.*)$"), regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(no.ReplaceAllString(strings.ToLower(m[1]), ""))
		all = append(all, strings.Join(words, "-"))
	}
	return all
}

// TestPythonOfDocumentsParses has Python read every block of Python in the documents, and
// every block of JSON.
func TestPythonOfDocumentsParses(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?ms)^```(python|json)\n(.*?)^```$")
	var blocks [][3]string
	for name, text := range documents(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			blocks = append(blocks, [3]string{name, m[1], m[2]})
		}
	}
	require.NotEmpty(t, blocks)
	told, err := json.Marshal(blocks)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), testpython.Path(t), "-c", `
import ast, json, sys
for name, language, text in json.load(sys.stdin):
    try:
        compile(text, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT) if language == "python" else json.loads(text)
    except ValueError as wrong:
        sys.exit(f"{name}: {wrong}: {text}")
`)
	cmd.Stdin = bytes.NewReader(told)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
