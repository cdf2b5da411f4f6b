//go:build linux

package tools_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// examples are the sample tools, with their environments made.
func examples(t *testing.T) launcher.Options {
	t.Helper()
	o := launcher.Options{Dir: filepath.Join("..", "..", "examples", "tools"), Home: home, Artifacts: t.TempDir()}
	box, err := launcher.OpenToolbox(o)
	require.NoError(t, err)
	entries, err := box.List(t.Context())
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, e := range entries {
		_, err := box.Setup(t.Context(), e.Dir, testpython.Path(t), false, nil)
		require.NoError(t, err)
	}
	return o
}

// TestTheSampleTools are valid, and do what their documents say.
func TestTheSampleTools(t *testing.T) {
	t.Parallel()
	o := examples(t)
	box, err := launcher.OpenToolbox(o)
	require.NoError(t, err)
	for _, id := range []string{"word-count", "compound-interest"} {
		e, err := box.Find(t.Context(), id)
		require.NoError(t, err)
		report, err := box.Validate(t.Context(), e.Dir, nil)
		require.NoError(t, err)
		require.EqualValues(t, "pass", report.Overall, "%+v", report.Checks)
		require.Len(t, report.Checks, 12)
	}
	l, err := launcher.Start(t.Context(), o)
	require.NoError(t, err)
	defer l.Shutdown(t.Context())
	r, err := l.Run(t.Context(), launcher.Request{Tool: "word-count", Inputs: json.RawMessage(`{"text":"to be or not to be","top":1}`)})
	require.NoError(t, err)
	require.JSONEq(t, `{"words":6,"frequent":{"columns":["word","count"],"rows":[{"word":"be","count":2}]}}`, string(r.Outputs))
	r, err = l.Run(t.Context(), launcher.Request{Tool: "word-count", Inputs: json.RawMessage(`{"top":1.5}`)})
	require.NoError(t, err)
	require.Equal(t, "the tool refused the inputs (status 422): top: expected a whole number from 1 to 100", r.Error.Message)
	r, err = l.Run(t.Context(), launcher.Request{Tool: "compound-interest", Inputs: json.RawMessage(`{"years":0}`)})
	require.NoError(t, err)
	require.Equal(t, "the tool refused the inputs (status 422): years: Input should be greater than or equal to 1", r.Error.Message)
	n := 0
	r, err = l.Stream(t.Context(), launcher.Request{ID: "slow", Tool: "compound-interest", Inputs: json.RawMessage(`{"years":50,"pause":5}`)}, func(messages.ToolEvent) error {
		if n++; n == 2 {
			return l.Cancel(t.Context(), "slow")
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeCancelled, r.Outcome)
	require.False(t, r.Hard, "it takes a cancel")
	require.Contains(t, string(r.Outputs), `"year 1: 1050.00"`)

	// Nobody else on the machine can use them.
	state, err := l.State(t.Context())
	require.NoError(t, err)
	require.Len(t, state.Tools, 2)
	for _, tool := range state.Tools {
		require.Equal(t, 403, get(t, tool.Port))
		args, err := os.ReadFile(filepath.Join("/proc", itoa(tool.PID), "cmdline"))
		require.NoError(t, err)
		require.Equal(t, "main.py --port "+itoa(tool.Port), strings.Join(strings.Split(strings.Trim(string(args), "\x00"), "\x00")[1:], " "), "no secret is in its arguments")
	}
}

// TestANewTool can be made, checked and run as it is written.
func TestANewTool(t *testing.T) {
	t.Parallel()
	o := launcher.Options{Dir: t.TempDir(), Home: t.TempDir()}
	box, err := launcher.OpenToolbox(o)
	require.NoError(t, err)
	dir, err := box.New("my-first-tool")
	require.NoError(t, err)
	python, err := exec.LookPath("python3")
	require.NoError(t, err)
	env, err := box.Setup(t.Context(), dir, python, false, nil)
	require.NoError(t, err)
	require.True(t, env.Changed)
	env, err = box.Setup(t.Context(), dir, python, false, nil)
	require.NoError(t, err)
	require.False(t, env.Changed)
	report, err := box.Validate(t.Context(), dir, nil)
	require.NoError(t, err)
	require.EqualValues(t, "pass", report.Overall, "%+v", report.Checks)
}
