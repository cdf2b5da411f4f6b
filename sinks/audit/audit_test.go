package audit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/audit"
)

var (
	exec = messages.Execute{
		ID: "e-1", Key: messages.SessionKey{Session: "s", Cwd: "/srv"}, Owner: "o", Timeout: time.Minute,
		Cells: []messages.Cell{{Code: `client(api_key="abc")`}, {Code: "print('hunter2!')"}},
	}
	result = messages.Result{
		Outcome: messages.OutcomeError, State: messages.StateKept, Backend: "runner", Duration: 12 * time.Millisecond, Reason: "it said hunter2!",
		Cells: []messages.CellResult{{Outcome: messages.OutcomeOK, DurationMS: 3}, {Outcome: messages.OutcomeError, Error: &messages.ErrorDetails{Name: "ValueError", Message: "hunter2!"}}},
	}
)

func open(t *testing.T, o audit.Options) *audit.Log {
	t.Helper()
	o.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	l, err := audit.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func TestALineForEachCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit", "log.jsonl")
	l := open(t, audit.Options{Path: path})
	require.NoError(t, l.Write(exec, result, "hunter2!", "x"))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.JSONEq(t, `{"at":"2026-01-02T03:04:05.000Z","exec":"e-1","session":"s","cwd":"/srv","owner":"o","backend":"runner","outcome":"error","state":"kept","duration_ms":12,"timeout_ms":60000,"reason":"it said ***","cells":[
		{"sha256":"`+sum(t, data, 0)+`","bytes":21,"outcome":"ok","duration_ms":3},
		{"sha256":"`+sum(t, data, 1)+`","bytes":17,"outcome":"error","duration_ms":0,"error":"ValueError"}]}`, string(data))
	require.NotEqual(t, sum(t, data, 0), sum(t, data, 1))
	require.NotContains(t, string(data), "hunter2")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Write(exec, result), audit.ErrClosed)
	_, err = audit.Open(audit.Options{})
	require.ErrorContains(t, err, "no path")
}

func sum(t *testing.T, data []byte, i int) string {
	t.Helper()
	var line struct{ Cells []struct{ SHA256 string } }
	require.NoError(t, json.Unmarshal(data, &line))
	require.Len(t, line.Cells[i].SHA256, 64)
	return line.Cells[i].SHA256
}

func TestSecretsAreMasked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, audit.Options{Path: path, Code: true, Secrets: []string{"of the host"}})
	for code, want := range map[string]string{
		"x = 'sk-abcdefghijklmnop1234'":                                "x = '***'",
		"h = {'Authorization': 'Bearer abcdefgh12345678'}":             "h = {'Authorization': ***}",
		"get('https://me:pass@host/')":                                 "get('https://me:***@host/')",
		`connect(password="a b")`:                                      `connect(password=***)`,
		`os.environ["MY_API_KEY"] = 'abc'`:                             `os.environ["MY_API_KEY"] = ***`,
		"say('of the host')":                                           "say('***')",
		"x = 1  # nothing to hide":                                     "x = 1  # nothing to hide",
		"t = 'ghp_abcdefghijklmnopqrstuv'; u = 'AKIAABCDEFGHIJKLMNOP'": "t = '***'; u = '***'",
	} {
		require.NoError(t, l.Write(messages.Execute{Cells: []messages.Cell{{Code: code}}}, messages.Result{}))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		var got struct{ Cells []struct{ Code string } }
		require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &got))
		require.Equal(t, want, got.Cells[0].Code)
	}
}

func TestFilesAreMovedAndLinesStayWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	l := open(t, audit.Options{Path: path, MaxBytes: 2000, Keep: 2})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if err := l.Write(exec, result); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	files, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		require.LessOrEqual(t, len(data), 2000)
		for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
			require.True(t, json.Valid([]byte(line)), line)
		}
	}
}
