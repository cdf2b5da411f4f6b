package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/gobuild"
)

// edit is a change of a source file, by its path from the root of the module.
type edit struct{ file, old, new string }

// Changes that make another program of this one.
var (
	// otherProgram changes what no server depends on: the Python of sessions, and how long one
	// that was replaced hands on.
	otherProgram = []edit{
		{"internal/pysrc/coppice_runner/session.py", "\n", "\n# This is another build.\n"},
		{"cmd/internal/cli/serve_replace.go", "lingers = 2 * time.Second", "lingers = 1500 * time.Millisecond"},
	}
	otherHandover   = []edit{{"cmd/internal/handover/handover.go", "const Version = 1\n", "const Version = 2\n"}}
	otherExecutions = []edit{{"cmd/internal/httpapi/left.go", "const ExportVersion = 1\n", "const ExportVersion = 2\n"}}
	otherSessions   = []edit{{"internal/estate/note.go", "const Version = 1\n", "const Version = 2\n"}}
)

// build builds the command with changes, and returns its path. The tree stays as it is.
func build(t *testing.T, version string, edits []edit) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	for _, e := range edits {
		path := filepath.Join(root, filepath.FromSlash(e.file))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), e.old, e.file)
		changed := filepath.Join(dir, strings.ReplaceAll(e.file, "/", "-"))
		require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600))
		overlay["Replace"][path] = changed
	}
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	plan, bin := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "coppice")
	require.NoError(t, os.WriteFile(plan, text, 0o600))
	args := append([]string{"build", "-overlay", plan, "-ldflags", "-s -w -X github.com/coppice-run/coppice/cmd/internal/version.linked=" + version, "-o", bin}, gobuild.Flags()...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, string(said))
	return bin
}

// TestNotReplacedByAProgramOfAnotherProtocol: one that does not understand something of what it
// would be left is told so before anything has moved: a reader is not sent away, and the
// cells run on in the server that was to be replaced.
func TestNotReplacedByAProgramOfAnotherProtocol(t *testing.T) {
	p := newReplaced(t)
	s := p.start("--addr", "127.0.0.1:0")
	c := s.serves()
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	gate := filepath.Join(p.home, "gate")
	_, err := c.Start(ctx, client.Execute{ID: "lasting", Session: "lasting", Cells: []messages.Cell{{Code: lasting(gate)}}})
	require.NoError(t, err)
	type read struct {
		text   string
		result messages.Result
		err    error
	}
	over := make(chan read, 1)
	go func() { // ends with the cell
		var r read
		r.text, r.result, r.err = run(ctx, c, client.Execute{ID: "lasting", Session: "lasting", Cells: []messages.Cell{{Code: lasting(gate)}}})
		over <- r
	}()
	others := map[string][]edit{"does not know executions/1": otherExecutions}
	if full { // each is a program that is built
		others["speaks version 2 of the handover"], others["does not know sessions/1"] = otherHandover, otherSessions
	}
	for want, edits := range others {
		other := p.startOf(build(t, "9.0.0", edits), "--replace", "--addr", "127.0.0.1:0")
		<-other.ended
		require.NotZero(t, other.cmd.ProcessState.ExitCode(), want)
		require.Contains(t, other.words(), want)
		require.Contains(t, other.words(), "9.0.0")
		h, err := c.Health(ctx)
		require.NoError(t, err)
		require.Equal(t, s.cmd.Process.Pid, h.PID)
		require.Empty(t, over)
	}
	_, result, err := run(ctx, c, client.Execute{Session: "x", Cells: []messages.Cell{{Code: "x = 1"}}})
	require.NoError(t, err)
	require.Equal(t, messages.StateFresh, result.State)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	r := <-over
	require.NoError(t, r.err)
	require.Equal(t, messages.StateFresh, r.result.State, "no other host has had it")
	require.Equal(t, numbered(strings.Count(r.text, "\n")), r.text)
	s.ends()
}
