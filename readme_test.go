package coppice_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readmeNames are what the Go blocks of the README take for granted.
const readmeNames = `package readme

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/agent/selfref"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

var (
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

// TestReadmeCompiles compiles every Go block of the README: statements as the body
// of a function that returns an error, a literal as a value.
func TestReadmeCompiles(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString(readmeNames)
	blocks := strings.Split(string(readme), "\n```go\n")[1:]
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
	out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, b.String())
}
