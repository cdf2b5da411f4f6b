//go:build linux

package toolcheck_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/toolcheck"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/toolbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEachCheckCanFail, and what then follows is skipped.
func TestEachCheckCanFail(t *testing.T) {
	t.Parallel()
	sample := func(do string, arg any) map[string]any {
		return map[string]any{"inputs": []any{
			map[string]any{"key": "do", "label": "Do", "type": "text", "default": do},
			map[string]any{"key": "arg", "label": "Arg", "type": "json", "default": arg},
		}}
	}
	for name, tc := range map[string]struct {
		tool    toolbox.Tool
		mend    func(dir string)
		check   string
		status  toolcheck.Status
		message string
		detail  string
	}{
		"no pyproject": {
			mend: func(dir string) { _ = os.Remove(filepath.Join(dir, "pyproject.toml")) }, check: toolcheck.FolderStructure,
			status: toolcheck.Fail, message: "files are missing: pyproject.toml",
		},
		"secrets that others can read": {
			mend: func(dir string) { _ = os.Chmod(filepath.Join(dir, ".env"), 0o644) }, check: toolcheck.FolderStructure,
			status: toolcheck.Warn, message: "chmod 600 it",
		},
		"an unknown key": {
			tool: toolbox.Tool{Set: map[string]any{"nmae": 1}}, check: toolcheck.ToolJSONParses, status: toolcheck.Fail,
			message: "problems: 1", detail: `nmae: the key is not known; did you mean "name"?`,
		},
		"no outputs": {
			tool: toolbox.Tool{Set: map[string]any{"outputs": []any{}}}, check: toolcheck.SchemasCoherent, status: toolcheck.Fail,
			message: "problems: 1", detail: "outputs: the list is empty",
		},
		"another id than its folder": {
			tool: toolbox.Tool{Set: map[string]any{"id": "another"}}, check: toolcheck.SchemasCoherent, status: toolcheck.Warn,
			message: `id: "another" is not the name of the folder`,
		},
		"a dependency that is not declared": {
			tool: toolbox.Tool{Main: "import fastapi\n"}, check: toolcheck.PyprojectOK, status: toolcheck.Fail, message: "does not depend on: fastapi",
		},
		"a dependency from elsewhere": {
			mend: func(dir string) {
				_ = os.WriteFile(filepath.Join(dir, "pyproject.toml"), []byte("[project]\nname='x'\ndependencies=['a @ https://example.org/a.whl']\n"), 0o600)
			}, check: toolcheck.PyprojectOK, status: toolcheck.Warn, message: "it does not come from the package index",
		},
		"no environment": {
			tool: toolbox.Tool{NoVenv: true}, check: toolcheck.VenvExists, status: toolcheck.Fail, message: "coppice tool setup x",
		},
		"an environment that does not start": {
			tool: toolbox.Tool{NoVenv: true}, mend: func(dir string) {
				_ = os.MkdirAll(filepath.Join(dir, ".venv", "bin"), 0o700)
				_ = os.WriteFile(filepath.Join(dir, ".venv", "bin", "python"), []byte("no program"), 0o600)
			}, check: toolcheck.VenvExists, status: toolcheck.Fail, message: "its interpreter does not start",
		},
		"a start that raises": {
			tool: toolbox.Tool{Env: "START=raise"}, check: toolcheck.ToolSpawns, status: toolcheck.Fail,
			message: "it exited with code 1", detail: "RuntimeError: no good start",
		},
		"drift": {
			tool: toolbox.Tool{Env: "START=drift"}, check: toolcheck.SchemaMatchesDisk, status: toolcheck.Fail,
			message: "differ in 2 places", detail: `name: "x" in tool.json, "another name" in the process`,
		},
		"a sample run that raises": {
			tool: toolbox.Tool{Set: sample("raise", nil)}, check: toolcheck.SampleRunSucceeds, status: toolcheck.Fail,
			message: "RuntimeError: it broke", detail: "view stderr",
		},
		"a sample run that hangs": {
			tool:  toolbox.Tool{Set: map[string]any{"validator_timeout_override": 1, "inputs": sample("sleep", 60)["inputs"]}},
			check: toolcheck.SampleRunSucceeds, status: toolcheck.Fail, message: "the run did not end within 1s",
		},
		"outputs of another type": {
			tool: toolbox.Tool{Set: sample("bad", map[string]any{"result": 1})}, check: toolcheck.OutputConforms, status: toolcheck.Fail,
			message: "result: an output of type tree is expected to be",
		},
		"outputs that were not declared": {
			tool: toolbox.Tool{Set: sample("bad", map[string]any{"result": []any{}, "more": 1})}, check: toolcheck.OutputConforms, status: toolcheck.Warn,
			message: "more: the tool does not declare this output",
		},
		"a stream": {
			tool: toolbox.Tool{Stream: true, Set: sample("stream", 3)}, check: toolcheck.StreamingCheck, status: toolcheck.Pass, message: "the first event came after",
		},
		"a fixture": {
			mend: reference(`{"inputs":{"do":"echo","arg":1},"outputs":{"result":{"echo":2}}}`), check: toolcheck.ReferenceFixturesMatch, status: toolcheck.Fail,
			message: "a.json: the outputs are not those of the reference", detail: "result.echo: 2 in the reference, 1 in the run",
		},
		"a fixture that is not one": {
			mend: reference(`[]`), check: toolcheck.ReferenceFixturesMatch, status: toolcheck.Fail, message: "a.json: it is not an object",
		},
		"a fixture that matches": {
			mend: reference(`{"inputs":{"do":"echo","arg":1},"outputs":{"result":{"echo":1}}}`), check: toolcheck.ReferenceFixturesMatch, status: toolcheck.Pass,
			message: "fixtures that match: 1",
		},
		"an end that has to be forced": {
			tool: toolbox.Tool{Env: "START=deaf"}, check: toolcheck.CleanShutdown, status: toolcheck.Warn, message: "and was killed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := toolbox.New(t)
			tc.tool.ID = "x"
			dir := box.Add(tc.tool)
			if tc.mend != nil {
				tc.mend(dir)
			}
			heard := 0
			r, err := toolcheck.Validate(t.Context(), toolcheck.Options{Dir: dir, Progress: func(toolcheck.Check) { heard++ }})
			require.NoError(t, err)
			require.Len(t, r.Checks, 12)
			require.Equal(t, 12, heard)
			c := r.Check(tc.check)
			require.Equal(t, tc.status, c.Status, "%+v", r.Checks)
			require.Contains(t, c.Message, tc.message)
			require.Contains(t, strings.Join(c.Details, "\n"), tc.detail)
			after := false
			for i, check := range r.Checks {
				require.Equal(t, toolcheck.Names[i], check.Name)
				if after && tc.status == toolcheck.Fail {
					require.Equal(t, toolcheck.Skip, check.Status)
					require.Equal(t, "an earlier check failed", check.Message)
				}
				after = after || check.Name == tc.check
			}
			if tc.status == toolcheck.Fail {
				require.Equal(t, toolcheck.Fail, r.Overall)
			} else {
				require.Equal(t, toolcheck.Warn, r.Overall, "at least its environment was not made by us")
			}
			require.Eventually(t, func() bool { return len(proc.WithEnv("TOOLBOX_MARK", box.Mark)) == 0 }, time.Minute, 10*time.Millisecond)
		})
	}
}

func reference(text string) func(dir string) {
	return func(dir string) {
		_ = os.MkdirAll(filepath.Join(dir, "reference"), 0o700)
		_ = os.WriteFile(filepath.Join(dir, "reference", "a.json"), []byte(text), 0o600)
	}
}

// TestAValidationThatIsGivenUp leaves no process.
func TestAValidationThatIsGivenUp(t *testing.T) {
	t.Parallel()
	box := toolbox.New(t)
	dir := box.Add(toolbox.Tool{ID: "x", Env: "START=sick"})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	r, err := toolcheck.Validate(ctx, toolcheck.Options{Dir: dir})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, r.Checks, 12)
	require.Empty(t, proc.WithEnv("TOOLBOX_MARK", box.Mark))
}

// TestAValidationThatIsGivenUpDuringARun does not say that a limit has passed.
func TestAValidationThatIsGivenUpDuringARun(t *testing.T) {
	t.Parallel()
	box := toolbox.New(t)
	dir := box.Add(toolbox.Tool{ID: "x", Set: map[string]any{"inputs": []any{
		map[string]any{"key": "do", "label": "Do", "type": "text", "default": "sleep"},
		map[string]any{"key": "arg", "label": "Arg", "type": "json", "default": 30},
	}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := toolcheck.Validate(ctx, toolcheck.Options{Dir: dir, Progress: func(c toolcheck.Check) {
		if c.Name == toolcheck.SchemaMatchesDisk {
			time.AfterFunc(100*time.Millisecond, cancel) // in the sample run, which is next
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	for _, c := range r.Checks {
		require.NotContains(t, c.Message, "did not end within")
	}
}
