package toolbox_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolbox"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
	fake "github.com/coppice-run/coppice/test/toolbox"
)

// folder is a folder of tools t0 to t7.
func folder(t *testing.T) (box *toolbox.Box, ids []string) {
	t.Helper()
	tools := fake.New(t)
	for i := range 8 {
		ids = append(ids, "t"+strconv.Itoa(i))
		tools.Add(fake.Tool{ID: ids[i], NoVenv: true})
	}
	return open(t, tools.Dir), ids
}

func open(t *testing.T, dir string) *toolbox.Box {
	t.Helper()
	box, err := toolbox.Open(toolbox.Options{Dir: dir})
	require.NoError(t, err)
	return box
}

// TestNoPinIsLost when several hosts of one folder pin at once.
func TestNoPinIsLost(t *testing.T) {
	t.Parallel()
	one, ids := folder(t)
	two := open(t, one.Dir())
	for range 5 {
		for _, on := range []bool{true, false} {
			var all sync.WaitGroup
			for i, id := range ids {
				box := one
				if i%2 == 0 {
					box = two
				}
				all.Go(func() {
					if err := box.Pin(t.Context(), id, on, nil); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			pins, err := one.Pinned()
			require.NoError(t, err)
			if !on {
				require.Empty(t, pins)
				continue
			}
			require.Equal(t, ids, pins)
		}
	}
}

// TestNoReportIsLost when several tools of one folder are validated at once.
func TestNoReportIsLost(t *testing.T) {
	t.Parallel()
	box, ids := folder(t)
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			_, keepErr, err := box.Validate(t.Context(), filepath.Join(box.Dir(), id), nil) // it fails early: there is no environment
			if keepErr != nil || err != nil {
				t.Error(keepErr, err)
			}
		})
	}
	all.Wait()
	entries, err := box.List(t.Context())
	require.NoError(t, err)
	valid, err := box.Validated(entries)
	require.NoError(t, err)
	require.Len(t, valid, len(ids))
}

// TestAPinWaitsForItsTurn, and changes nothing when that does not come.
func TestAPinWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	box, ids := folder(t)
	other := flock.New(filepath.Join(box.Dir(), toolbox.LockFile))
	require.NoError(t, other.Lock())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := box.Pin(ctx, ids[0], true, func(bool) (bool, error) {
		t.Error("it is not its turn")
		return false, nil
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, other.Close())
	require.NoError(t, box.Pin(t.Context(), ids[0], true, nil))
	pins, err := box.Pinned()
	require.NoError(t, err)
	require.Equal(t, ids[:1], pins)
}

// TestAPinThatCannotBeKept is taken back.
func TestAPinThatCannotBeKept(t *testing.T) {
	t.Parallel()
	box, ids := folder(t)
	var applied []bool
	err := box.Pin(t.Context(), ids[0], true, func(on bool) (bool, error) {
		applied = append(applied, on)
		return false, os.MkdirAll(filepath.Join(box.Dir(), toolbox.PinFile), 0o700) // nothing can take its name
	})
	require.ErrorContains(t, err, "write "+filepath.Join(box.Dir(), toolbox.PinFile))
	require.Equal(t, []bool{true, false}, applied)
}

// TestPinsOfWhatIsNotThere: only a pin that shall hold wants a tool.
func TestPinsOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"an empty folder": t.TempDir(), "no folder": filepath.Join(t.TempDir(), "none")} {
		box := open(t, dir)
		require.NoError(t, box.Pin(t.Context(), "x", false, nil), name)
		var told *messages.ToolError
		require.ErrorAs(t, box.Pin(t.Context(), "x", true, nil), &told, name)
		require.Equal(t, messages.ToolErrorNotFound, told.Kind, name)
		pins, err := box.Pinned()
		require.NoError(t, err, name)
		require.Empty(t, pins, name)
	}
	_, err := toolbox.Open(toolbox.Options{Dir: "toolbox_test.go"})
	require.EqualError(t, err, "toolbox_test.go is not a folder of tools")
}

func TestCheckInputs(t *testing.T) {
	t.Parallel()
	tool := &toolspec.Tool{ID: "x", Inputs: []toolspec.Input{{Key: "a", Type: "number"}}}
	for text, fine := range map[string]bool{"": true, "{}": true, `{"a":1}`: true, "null": true, "[1]": false, "1": false, "{": false, `{"a":"1"}`: false} {
		require.Equal(t, fine, toolbox.CheckInputs(tool, messages.RawJSON(text)) == nil, text)
	}
	require.EqualError(t, toolbox.CheckInputs(tool, messages.RawJSON(`{"b":1,"c":2}`)), `the tool x has no input "b", "c"; it has a`)
	require.True(t, toolbox.IsJSON([]byte(`[1]`)))
	require.False(t, toolbox.IsJSON([]byte(`[1`)))
}
