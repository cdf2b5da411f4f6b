//go:build unix

package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/test/pathattack"
)

// TestAttacksByPathOverHTTP: what the files of a workspace refuse is refused at this door
// too, and nothing is told of what is outside.
func TestAttacksByPathOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	dir := filepath.Join(t.TempDir(), "folder")
	require.NoError(t, os.Mkdir(dir, 0o700))
	outside := pathattack.Make(t, dir)
	_, err := s.CreateWorkspace(t.Context(), client.NewWorkspace{Name: "w", Folder: dir})
	require.NoError(t, err)
	const at = inWorkspace + "/files"
	query := func(p string) string { return "?path=" + url.QueryEscape(p) }
	requests := map[string]func(p string) (method, path, body string){
		"read":  func(p string) (string, string, string) { return "GET", at + query(p), "" },
		"write": func(p string) (string, string, string) { return "PUT", at + query(p), "attacked" },
		"list":  func(p string) (string, string, string) { return "GET", at + "/list" + query(p), "" },
		"watch": func(p string) (string, string, string) { return "GET", at + "/watch" + query(p), "" },
		"make": func(p string) (string, string, string) {
			return "POST", at + "/make", `{"path":` + member(p) + `}`
		},
		"stat": func(p string) (string, string, string) { return "GET", at + "/stat" + query(p), "" },
		"move from": func(p string) (string, string, string) {
			return "POST", at + "/move", `{"from":` + member(p) + `,"to":"got","replace":true}`
		},
		"move to": func(p string) (string, string, string) {
			return "POST", at + "/move", `{"from":"inside","to":` + member(p) + `,"replace":true}`
		},
		"remove": func(p string) (string, string, string) { return "DELETE", at + query(p) + "&all=true", "" },
	}
	tried, byStatus := 0, map[int]int{}
	for _, a := range pathattack.Attacks {
		for _, op := range pathattack.Operations[:a.Refused] {
			method, path, body := requests[op](a.Path)
			status, answer := s.ask(method, path, body)
			name := fmt.Sprintf("%s %.60q: %d %s", op, a.Path, status, answer)
			require.Contains(t, []int{400, 403, 409, 422}, status, name)
			require.Contains(t, answer, `"error":{"code":`, name)
			require.NotContains(t, answer, outside, name)
			tried++
			byStatus[status]++
		}
		// As the name of a file in a form, which is one more way to write.
		if a.Refused == len(pathattack.Operations) {
			form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=" + quoted(a.Path) + "\r\n\r\nattacked\r\n--b--\r\n"
			status, answer := s.ask("POST", at, form, "Content-Type", "multipart/form-data; boundary=b")
			require.Contains(t, []int{400, 403, 409, 422}, status, "%.60q: %s", a.Path, answer)
			tried++
		}
	}
	require.GreaterOrEqual(t, tried, 200)
	require.Greater(t, byStatus[http.StatusForbidden], 100)
	data, err := os.ReadFile(filepath.Join(outside, "secret"))
	require.NoError(t, err)
	require.Equal(t, "secret", string(data))
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	data, err = os.ReadFile(filepath.Join(dir, "inside"))
	require.NoError(t, err)
	require.Equal(t, "inside", string(data))

	// In the path of the address nothing of it gets through either.
	for _, path := range []string{at + "/../../../etc/passwd", at + "/%2e%2e/%2e%2e", "/api/workspaces/..%2f..%2fetc/files?path=passwd"} {
		status, answer := s.ask("GET", path, "")
		require.Equal(t, http.StatusBadRequest, status, "%s: %s", path, answer)
	}
}

// member is a text as JSON has it, also where that is no text: JSON would put another in its
// place.
func member(s string) string {
	data, err := json.Marshal(s)
	if err != nil || !utf8.ValidString(s) {
		return `"` + s + `"`
	}
	return string(data)
}

// quoted is a text as the head of a part has it.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// TestAnUploadThatBreaksLeavesNothing: neither a part of the file, nor one beside it.
func TestAnUploadThatBreaksLeavesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	w, err := s.CreateWorkspace(t.Context(), client.NewWorkspace{Name: "w"})
	require.NoError(t, err)
	c, err := client.New(client.Options{URL: s.url, Token: token})
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = c.WriteFile(ctx, "w", "half", &breaking{cancel: cancel}, client.WriteFile{})
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool {
		one, err := s.Workspace(t.Context(), "w")
		return err == nil && one.InUse == 0
	}, waitTime, tick)
	entries, err := os.ReadDir(w.Folder)
	require.NoError(t, err)
	require.Empty(t, entries)
}
