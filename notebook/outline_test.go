package notebook_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

// sameOutline compares the outline of a notebook with the notebook.
func sameOutline(t *testing.T, data []byte, limit, window int) {
	t.Helper()
	whole, err := notebook.Parse(data)
	if err != nil {
		return
	}
	got, err := notebook.Outline(data, limit, window)
	require.NoError(t, err)
	require.LessOrEqual(t, len(got), len(data))
	d, err := notebook.Parse(got)
	require.NoError(t, err, "%s", got)
	require.Equal(t, whole.Text(), d.Text())
	require.Equal(t, whole.Len(), d.Len())
	for i, c := range whole.Cells() {
		require.Equal(t, c.Type(), d.Cell(i).Type())
		require.Empty(t, d.Cell(i).Outputs())
	}
}

func TestAnOutlineHasTheCells(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, window := range []int{1, 2, 7, 64, 1 << 16} {
				sameOutline(t, data, 16, window)
				sameOutline(t, data, 1<<20, window)
			}
		})
	}
}

func TestAnOutlineLeavesOut(t *testing.T) {
	t.Parallel()
	const long = "abcdefghijklmnopqrstuvwxyz"
	for _, tt := range []struct{ name, in, want string }{
		{"outputs", `{"outputs": [ {"data": ["x]\"[", {}]} ], "a": 1}`, `{"outputs": [], "a": 1}`},
		{"outputs that are none", `{"outputs": {"a": [1]}, "b": "outputs", "c": ["outputs", [2]]}`, ``},
		{"a picture", `{"attachments": {"a.png": {"image/png": "` + long + `"}}}`, `{"attachments": {"a.png": {"image/png": ""}}}`},
		{"sources", `{"source": "` + long + `", "input": ["` + long + `", "b"], "other": ["` + long + `"]}`, `{"source": "` + long + `", "input": ["` + long + `", "b"], "other": [""]}`},
		{"escapes", `{"a": "\\\"\u0041` + long + `\\", "b": "\\", "c": "\""}`, `{"a": "", "b": "\\", "c": "\""}`},
		{"a name with escapes", `{"\u0073ource": "` + long + `"}`, ``},
		{"just short enough", `["0123456789abcde", "0123456789abcdef"]`, `["0123456789abcde", ""]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			if want == "" {
				want = tt.in
			}
			for _, window := range []int{1, 3, 1 << 10} {
				got, err := notebook.Outline([]byte(tt.in), 16, window)
				require.NoError(t, err)
				require.Equal(t, want, string(got))
			}
		})
	}
	for _, cut := range []string{`"a`, `"a\`, `{"outputs": [`, `{"outputs": ["x`} {
		_, err := notebook.Outline([]byte(cut), 16, 3)
		require.Error(t, err, cut)
	}
}

// What is wrong with a file is told as Open tells it.
func TestOpenOutline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for name, text := range map[string]string{
		"cut off": `{"cells": [{"cell_type": "code", "outputs": ["x`, "no notebook": `[]`, "trailing": `{"cells": []} x`,
		"deep": strings.Repeat("[", 20000), "UTF-16": "\xff\xfe{\x00", "a cell": `{"cells": [{}]}`,
	} {
		path := file(name, text)
		_, want := notebook.Open(t.Context(), path)
		_, got := notebook.OpenOutline(t.Context(), path)
		require.Error(t, want, name)
		require.EqualError(t, got, want.Error(), name)
	}
	_, err := notebook.OpenOutline(t.Context(), filepath.Join(dir, "none.ipynb"))
	require.ErrorIs(t, err, notebook.ErrNotFound)

	picture := strings.Repeat("iVBORw0KGgo", 1<<16)
	path := file("large.ipynb", `{"cells": [{"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "plot()", "outputs": [{"output_type": "display_data", "data": {"image/png": "`+picture+`"}, "metadata": {}}]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}`)
	d, err := notebook.OpenOutline(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, "# %% [code] cell:0\nplot()", d.Text())
	require.Less(t, len(d.Bytes()), 300)
}

// FuzzOutline: a notebook and its outline have the same cells.
func FuzzOutline(f *testing.F) {
	for _, data := range corpus(f) {
		f.Add(data, uint8(5))
	}
	f.Fuzz(func(t *testing.T, data []byte, window uint8) {
		sameOutline(t, data, 16, int(window)+1)
		if _, err := notebook.Outline(bytes.TrimSuffix(data, []byte("}")), 16, int(window)+1); err != nil {
			require.NotEmpty(t, err.Error())
		}
	})
}
