//go:build linux

package tools_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/notfile"
	"github.com/coppice-run/coppice/test/toolbox"
)

// TestFilesAreNoFiles: a launcher starts and answers at once, whatever stands where a
// tool's files belong, and the other tools run.
func TestFilesAreNoFiles(t *testing.T) {
	box := toolbox.New(t)
	box.Add(toolbox.Tool{ID: "good"})
	home := t.TempDir()
	odd := []string{
		filepath.Join(box.Add(toolbox.Tool{ID: "odd"}), "tool.json"),
		filepath.Join(box.Add(toolbox.Tool{ID: "env"}), ".env"),
		filepath.Join(box.Dir, ".coppice-pins.json"),
		filepath.Join(box.Dir, ".coppice-checks.json"),
	}
	for _, kind := range notfile.Kinds {
		for _, path := range odd {
			notfile.Make(t, kind, path)
		}
		notfile.AtOnce(t, func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			l, err := launcher.Start(ctx, launcher.Options{Dir: box.Dir, Home: home})
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				return
			}
			entries, err := l.List(ctx)
			if err != nil || len(entries) != 3 {
				t.Errorf("%s: %v %v", kind, entries, err)
			}
			if _, err := l.Toolbox().Validated(entries); err == nil {
				t.Errorf("the checks are %s", kind)
			}
			if r := l.Shutdown(ctx); !r.Clean() {
				t.Errorf("%s: %+v", kind, r)
			}
		})
	}
	for _, path := range odd[2:] {
		notfile.Make(t, notfile.FIFO, path)
	}
	l, err := launcher.Start(t.Context(), launcher.Options{Dir: box.Dir, Home: home})
	require.NoError(t, err)
	defer func() { require.True(t, l.Shutdown(context.Background()).Clean()) }()
	_, err = l.Find(t.Context(), "odd")
	require.ErrorContains(t, err, "not a regular file")
	r, err := l.Run(t.Context(), launcher.Request{Tool: "env"})
	require.NoError(t, err)
	require.Equal(t, messages.ToolErrorSecret, r.Error.Kind)
	require.Contains(t, r.Error.Message, "not a regular file")
	r, err = l.Run(t.Context(), launcher.Request{Tool: "good", Inputs: toolbox.Inputs("echo", 1)})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
}
