package workspaceapi

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/files"
	"github.com/coppice-run/coppice/workspace/procs"
)

// TestErrorsHaveAnAnswer: the status and the code of each, however deep it stands.
func TestErrorsHaveAnAnswer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err    error
		status int
		code   string
	}{
		{&workspace.EndedError{Workspace: "w", Reason: workspace.ReasonIdle, Detail: "it was not used"}, 410, "ended"},
		{&workspace.ExistsError{Workspace: "w"}, 409, "conflict"},
		{&workspace.OptionsError{Field: "name", Problem: "no"}, 422, "bad_request"},
		{workspace.ErrUnknown, 404, "not_found"},
		{workspace.ErrNoPlace, 503, "overloaded"},
		{coppice.ErrClosed, 503, "draining"},
		{coppice.ErrOptions, 422, "bad_request"},
		{&procs.StartError{Program: "x", Err: fs.ErrNotExist}, 422, "not_started"},
		{procs.ErrAhead, 422, "bad_request"},
		{procs.ErrOver, 409, "ended"},
		{&files.Error{Op: "read", Path: "x", Err: files.ErrOutside}, 403, "outside"},
		{&files.Error{Op: "write", Path: "x", Err: files.ErrLink}, 403, "symlink"},
		{&files.Error{Op: "read", Path: "x", Err: &file.NotRegularError{Kind: file.FIFO}}, 403, "not_regular"},
		{&files.Error{Op: "write", Path: "x", Err: files.ErrQuota}, 413, "quota"},
		{&files.Error{Op: "write", Path: "x", Err: fs.ErrExist}, 409, "exists"},
		{&files.Error{Op: "read", Path: "x", Err: fs.ErrNotExist}, 404, "not_found"},
		{&files.Error{Op: "write", Path: "x", Err: errChanged}, 412, "changed"},
	} {
		told := meaning(fmt.Errorf("around: %w", tc.err))
		require.NotNil(t, told, "%v", tc.err)
		require.Equal(t, tc.status, told.status, "%v", tc.err)
		require.Equal(t, tc.code, told.code, "%v", tc.err)
	}
	require.Nil(t, meaning(errors.New("the disk is broken")))
}

// TestNumbersOfRequests: what is no number within the bounds is refused, and 2.0 is whole.
func TestNumbersOfRequests(t *testing.T) {
	t.Parallel()
	n, err := whole("n", 2, 10)
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
	for _, wrong := range []float64{-1, 0.5, 11, math.NaN(), math.Inf(1)} {
		_, err := whole("n", wrong, 10)
		require.Error(t, err, wrong)
	}
	n, err = whole("n", 1<<53-1, maxWhole)
	require.NoError(t, err)
	require.Equal(t, int64(1<<53-1), n)
	_, err = whole("n", 1<<53, maxWhole) // which 1<<53 + 1 is, too, once it was read
	require.Error(t, err)
	d, err := seconds("s", 1.5)
	require.NoError(t, err)
	require.Equal(t, 1500*time.Millisecond, d)
	for _, wrong := range []float64{-1, maxSeconds + 1, math.NaN(), math.Inf(1)} {
		_, err := seconds("s", wrong)
		require.Error(t, err, wrong)
	}
	got, err := mode("", false)
	require.NoError(t, err)
	require.Zero(t, got, "it is left out")
	for text, want := range map[string]uint32{"644": 0o644, "0755": 0o755} {
		got, err := mode(text, true)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, wrong := range []string{"", "4755", "64", "888", "rwx", "-644", "0o644", " 644"} {
		_, err := mode(wrong, true)
		require.Error(t, err, wrong)
	}
}

// TestAFormsFilesStayBelow its folder: the path of a part is put behind it, unless it is
// absolute, which is then refused.
func TestAFormsFilesStayBelow(t *testing.T) {
	t.Parallel()
	for _, tc := range [][3]string{{".", "a", "a"}, {"d", "a/b", "d/a/b"}, {"d", "../a", "d/../a"}, {"d", "/etc/x", "/etc/x"}, {".", "/x", "/x"}, {"d", `\x`, `\x`}} {
		require.Equal(t, tc[2], below(tc[0], tc[1]))
	}
}

// TestQueries: a parameter is there once, and says what it may.
func TestQueries(t *testing.T) {
	t.Parallel()
	ask := func(query string) *http.Request {
		return httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+query, nil)
	}
	for query, wrong := range map[string]string{"": "missing", "?path=": "empty", "?path=a&path=b": "2 times", "?path=%00": "NUL", "?path=%ff": "UTF-8", "?path=" + strings.Repeat("x", maxPath+1): "4096"} {
		_, err := path(ask(query), "")
		require.ErrorContains(t, err, wrong, query)
	}
	name, err := path(ask(""), ".")
	require.NoError(t, err)
	require.Equal(t, ".", name)
	on, err := flag(ask("?all=true"), "all")
	require.NoError(t, err)
	require.True(t, on)
	for _, query := range []string{"?all=1", "?all=", "?all=true&all=true"} {
		_, err := flag(ask(query), "all")
		require.Error(t, err, query)
	}
	f, err := filter(ask("?label=a%3Db%3Dc&label=d&label=d%3De&owner=me"))
	require.NoError(t, err)
	require.Equal(t, workspace.Filter{Labels: map[string]string{"a": "b=c", "d": "e"}, Owner: "me"}, f)
	for _, query := range []string{"?wait=-1", "?wait=61", "?wait=x", "?wait=NaN"} {
		_, err := waits(ask(query), "wait", 0)
		require.Error(t, err, query)
	}
}
