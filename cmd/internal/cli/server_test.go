package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// place is a home in which a coppice serve is said to run, whose answers are those of
// the test by "METHOD path"; another request is answered with 404.
type place struct {
	t    *testing.T
	home string

	mu    sync.Mutex
	asked []string // guarded by mu: "METHOD path body"
}

func newPlace(t *testing.T, answers map[string]string) *place {
	t.Helper()
	p := &place{t: t, home: t.TempDir()}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.asked = append(p.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		p.mu.Unlock()
		answer, known := answers[r.Method+" "+r.URL.RequestURI()]
		switch {
		case !known:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":{"code":"not_found","message":"there is no ` + r.URL.Path + `"}}`
		case strings.HasPrefix(answer, "data:"):
			w.Header().Set("Content-Type", "text/event-stream")
		case strings.HasPrefix(answer, `{"error":{`):
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	data, err := json.Marshal(client.Record{URL: s.URL, Token: "t", PID: os.Getpid()})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(p.home, ".coppice"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(p.home, ".coppice", "serve.json"), data, 0o600))
	return p
}

// run runs a command line, and returns its exit code, standard output and error.
func (p *place) run(stdin string, args ...string) (code int, out, told string) {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	code = Main(args, strings.NewReader(stdin), &stdout, &stderr, []string{"COPPICE_HOME=" + p.home, "NO_COLOR=1"})
	return code, strings.ReplaceAll(stdout.String(), p.home, "HOME"), strings.ReplaceAll(stderr.String(), p.home, "HOME")
}

// requests are those that were made.
func (p *place) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

const (
	oneSession  = `{"session":"a","cwd":"/w","state":"busy","queue":2,"done":5,"pinned":true,"restarts":1,"pid":7,"rss":3145728,"cpu_seconds":1.5,"last_exit":{"kind":"failed","reason":"killed"}}`
	allSessions = `{"sessions":[` + oneSession + `]}`
	oneRun      = `{"executions":[{"id":"x1","session":"a","cwd":"/w","state":"ended","outcome":"ok","title":"work()","cells":1,"started":"2026-01-01T00:00:00Z","ended":"2026-01-01T00:00:01.5Z"}]}`
	printed     = "data: {\"seq\":1,\"cell\":0,\"type\":\"stdout\",\"text\":\"hello\\n\"}\n\n"
	final       = "data: {\"seq\":2,\"cell\":-1,\"type\":\"final\",\"outcome\":\"ok\",\"state\":\"kept\",\"cells\":[]}\n\n"
)

// TestSessions: each command of sessions asks the server that runs, and shows what it
// says.
func TestSessions(t *testing.T) {
	for name, tc := range map[string]struct {
		answers map[string]string
		args    []string
		code    int
		out     string
		told    string
		asked   string // the last request
	}{
		"list":              {map[string]string{"GET /api/sessions?hibernated=true": allSessions}, []string{"list"}, 0, "session  state  memory   waiting  pinned  restarts  folder\na        busy   3.0 MiB  2        pinned  1         /w\n", "", "GET /api/sessions?hibernated=true"},
		"list of none":      {map[string]string{"GET /api/sessions?hibernated=true": `{"sessions":[]}`}, []string{"list"}, 0, "no session has a kernel\n", "", "GET /api/sessions?hibernated=true"},
		"list as JSON":      {map[string]string{"GET /api/sessions?hibernated=true": `{"sessions":[]}`}, []string{"list", "--json"}, 0, "{\"sessions\":[]}\n", "", "GET /api/sessions?hibernated=true"},
		"show":              {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "GET /api/sessions/a?cwd=%2Fw": oneSession, "GET /api/executions?cwd=%2Fw&session=a": oneRun}, []string{"show", "a"}, 0, "process 7, 1.5 s of CPU, answered: 5 (calls, checkpoints and copies)\n  the kernel before ended: failed killed\n  x1  ok              1.5s  work()\n", "", "GET /api/executions?cwd=%2Fw&session=a"},
		"show none":         {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "GET /api/executions?session=b": `{"executions":[]}`}, []string{"show", "b"}, 1, "", "there is no /api/sessions/b", "GET /api/sessions/b"},
		"by its directory":  {map[string]string{"POST /api/sessions/a/reset?cwd=%2Fw": ""}, []string{"reset", "a", "--cwd", "/w"}, 0, "a was reset\n", "", "POST /api/sessions/a/reset?cwd=%2Fw"},
		"by its execution":  {map[string]string{"GET /api/sessions?hibernated=true": `{"sessions":[]}`, "GET /api/executions?session=a": oneRun, "POST /api/sessions/a/interrupt?cwd=%2Fw": ""}, []string{"interrupt", "a"}, 0, "a was interrupted\n", "", "POST /api/sessions/a/interrupt?cwd=%2Fw"},
		"interrupt":         {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "GET /api/sessions/a?cwd=%2Fw": oneSession, "POST /api/sessions/a/interrupt?cwd=%2Fw": ""}, []string{"interrupt", "a"}, 0, "a was interrupted\n", "", "POST /api/sessions/a/interrupt?cwd=%2Fw"},
		"interrupt nothing": {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "GET /api/sessions/a?cwd=%2Fw": `{"session":"a","cwd":"/w","state":"idle"}`, "POST /api/sessions/a/interrupt?cwd=%2Fw": ""}, []string{"interrupt", "a"}, 0, "nothing runs in a\n", "", "POST /api/sessions/a/interrupt?cwd=%2Fw"},
		"the same as JSON":  {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "GET /api/sessions/a?cwd=%2Fw": `{"session":"a","cwd":"/w","state":"idle"}`, "POST /api/sessions/a/interrupt?cwd=%2Fw": ""}, []string{"interrupt", "a", "--json"}, 0, "{\"done\":\"interrupt\",\"ran\":false,\"session\":\"a\"}\n", "", "POST /api/sessions/a/interrupt?cwd=%2Fw"},
		"list a workspace":  {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "GET /api/workspaces/w": `{"name":"w"}`}, []string{"list", "--workspace", "w"}, 0, "no session has a kernel\n", "", "GET /api/workspaces/w"},
		"list in none":      {map[string]string{"GET /api/sessions?hibernated=true": allSessions}, []string{"list", "--workspace", "nope"}, 1, "", "there is no /api/workspaces/nope", "GET /api/workspaces/nope"},
		"a name that turns": {map[string]string{"GET /api/sessions?hibernated=true": `{"sessions":[{"session":"a\u202eb","cwd":"/w\u001b","state":"idle"}]}`}, []string{"list"}, 0, "\"a\\u202eb\"  idle   0 B     0                0         \"/w\\x1b\"\n", "", "GET /api/sessions?hibernated=true"},
		"of two":            {map[string]string{"GET /api/sessions?hibernated=true": `{"sessions":[{"session":"a","cwd":"/w"},{"session":"a","cwd":"/x"}]}`}, []string{"close", "a"}, 2, "", "there are 2 sessions a: say which with --cwd /w, or --cwd /x", "GET /api/sessions?hibernated=true"},
		"close":             {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "DELETE /api/sessions/a?cwd=%2Fw": ""}, []string{"close", "a"}, 0, "a was closed\n", "", "DELETE /api/sessions/a?cwd=%2Fw"},
		"pin":               {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "POST /api/sessions/a/pin?cwd=%2Fw": ""}, []string{"pin", "a"}, 0, "a is pinned\n", "", "POST /api/sessions/a/pin?cwd=%2Fw"},
		"unpin as JSON":     {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "POST /api/sessions/a/unpin?cwd=%2Fw": ""}, []string{"unpin", "a", "--json"}, 0, "{\"done\":\"unpin\",\"session\":\"a\"}\n", "", "POST /api/sessions/a/unpin?cwd=%2Fw"},
		"fork":              {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "POST /api/sessions/a/fork?cwd=%2Fw": `{"sessions":[{"session":"a~1"},{"session":"a~2"}]}`}, []string{"fork", "a", "-n", "2"}, 0, "a~1\na~2\n", "", `POST /api/sessions/a/fork?cwd=%2Fw {"copies":2}`},
		"fork, but no":      {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "POST /api/sessions/a/fork?cwd=%2Fw": `{"error":{"code":"bad_request","message":"copies must be from 1"}}`}, []string{"fork", "a", "-n", "0"}, 2, "", "copies must be from 1", `POST /api/sessions/a/fork?cwd=%2Fw {"copies":0}`},
		"logs":              {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "GET /api/executions?cwd=%2Fw&session=a": oneRun, "GET /api/executions/x1/events": printed + final}, []string{"logs", "a"}, 0, "hello\n", "", "GET /api/executions/x1/events"},
		"logs as events":    {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "GET /api/executions?cwd=%2Fw&session=a": oneRun, "GET /api/executions/x1/events": printed + final}, []string{"logs", "a", "--json"}, 0, "{\"seq\":1,\"cell\":0,\"type\":\"stdout\",\"text\":\"hello\\n\"}\n{\"seq\":2,", "", "GET /api/executions/x1/events"},
		"logs of no run":    {map[string]string{"GET /api/sessions?hibernated=true": allSessions, "GET /api/executions?cwd=%2Fw&session=a": `{"executions":[]}`}, []string{"logs", "a"}, 1, "", "the server knows no execution of the session a", "GET /api/executions?cwd=%2Fw&session=a"},
		"no name":           {nil, []string{"pin"}, 2, "", "pin wants the name of one session", ""},
		"an answer of none": {map[string]string{"GET /api/sessions?hibernated=true": `{`}, []string{"list"}, 1, "", "read the answer", "GET /api/sessions?hibernated=true"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, tc.answers)
			code, out, told := p.run("", append([]string{"sessions"}, tc.args...)...)
			require.Equal(t, tc.code, code, "%s%s", out, told)
			require.Contains(t, out, tc.out)
			require.Contains(t, told, tc.told)
			asked := p.requests()
			if tc.asked == "" {
				require.Empty(t, asked)
				return
			}
			require.Equal(t, tc.asked, asked[len(asked)-1])
		})
	}
}

// TestWithoutAServer says how to have one, and no more.
func TestWithoutAServer(t *testing.T) {
	home := t.TempDir()
	for _, args := range [][]string{{"sessions", "list"}, {"sessions", "pin", "a"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 1, Main(args, strings.NewReader(""), &stdout, &stderr, []string{"COPPICE_HOME=" + home}))
		require.Equal(t, "coppice: no coppice serve runs; start it in another terminal: coppice serve\n", stderr.String())
		require.Empty(t, stdout.String())
	}
}

// TestARunOnAServer: a session that is named lives at the server that runs.
func TestARunOnAServer(t *testing.T) {
	ends := func(outcome string) map[string]string {
		return map[string]string{
			"POST /api/executions":          `{"id":"x1"}`,
			"GET /api/executions/x1/events": printed + strings.Replace(final, `"outcome":"ok"`, `"outcome":"`+outcome+`"`, 1),
		}
	}
	for name, tc := range map[string]struct {
		answers map[string]string
		args    []string
		code    int
		out     string
		told    string
	}{
		"for people":    {ends("ok"), nil, 0, "hello\n", ""},
		"as JSON":       {ends("ok"), []string{"--json"}, 0, `{"outcome":"ok",`, ""},
		"as events":     {ends("ok"), []string{"--events"}, 0, "{\"seq\":1,\"cell\":0,\"type\":\"stdout\",\"text\":\"hello\\n\"}\n{\"seq\":2,\"cell\":-1,\"type\":\"final\",\"outcome\":\"ok\",", ""},
		"as blocks":     {ends("ok"), []string{"--blocks"}, 0, "", ""},
		"it raised":     {ends("error"), []string{"--json"}, 1, `"outcome":"error"`, ""},
		"out of time":   {ends("timeout"), []string{"--json"}, 124, "", ""},
		"cancelled":     {ends("cancelled"), []string{"--json"}, 130, "", ""},
		"lost":          {ends("lost"), []string{"--json"}, 70, "", ""},
		"it is refused": {map[string]string{"POST /api/executions": `{"error":{"code":"bad_request","message":"no cells"}}`}, nil, 2, "", "no cells"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, tc.answers)
			code, out, told := p.run("", append([]string{"run", "--session", "a", "--cwd", "/w", "-c", "f()"}, tc.args...)...)
			require.Equal(t, tc.code, code, "%s%s", out, told)
			require.Contains(t, out, tc.out)
			require.Contains(t, told, tc.told)
			require.Regexp(t, `^POST /api/executions \{"id":"[^"]+","session":"a","cwd":"/w","cells":\[\{"code":"f\(\)"\}\],"timeout_seconds":-`, p.requests()[0])
		})
	}
}

// TestQuestionsOfAServer are answered here; without an answer the execution is
// cancelled.
func TestQuestionsOfAServer(t *testing.T) {
	asks := func(yield func(messages.Event, error) bool) {
		_ = yield(messages.InputRequest{ID: "q1", Prompt: "name? "}, nil) && yield(messages.Stream{}, nil)
	}
	for name, tc := range map[string]struct {
		ask   func(context.Context, messages.InputRequest) (string, error)
		asked []string
	}{
		"answered":   {func(context.Context, messages.InputRequest) (string, error) { return "Ada", nil }, []string{`POST /api/executions/x1/input {"id":"q1","value":"Ada"}`}},
		"no answer":  {func(context.Context, messages.InputRequest) (string, error) { return "", io.EOF }, []string{"POST /api/executions/x1/cancel"}},
		"not to ask": {nil, nil},
	} {
		p := newPlace(t, map[string]string{"POST /api/executions/x1/input": `{"status":"accepted"}`, "POST /api/executions/x1/cancel": ""})
		c, err := client.Find(client.FindOptions{Home: p.home})
		require.NoError(t, err)
		q := &questioner{c: c, id: "x1", ask: tc.ask}
		n := 0
		for _, err := range q.of(t.Context(), iter.Seq2[messages.Event, error](asks)) {
			require.NoError(t, err)
			if n++; n == 1 {
				q.joins.Wait()
			}
		}
		q.wait()
		c.Close()
		require.Equal(t, 2, n, name)
		require.Equal(t, tc.asked, p.requests(), name)
	}
}

// TestArtifacts lists, names and prints what was kept.
func TestArtifacts(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		out  string
		told string
	}{
		"none kept":      {[]string{"list"}, 0, "nothing is kept in " + dir, ""},
		"none, as JSON":  {[]string{"list", "--json"}, 0, "[]\n", ""},
		"no such one":    {[]string{"show", "3"}, 1, "", "3"},
		"not an id":      {[]string{"path", "x"}, 2, "", "x"},
		"no id":          {[]string{"show"}, 2, "", "name one artifact"},
		"two parts":      {[]string{"show", "1", "--lines", "1", "--bytes", "1"}, 2, "", "exclude each other"},
		"a wrong range":  {[]string{"show", "1", "--lines", "x"}, 2, "", "FIRST-LAST, counted from 1"},
		"backwards":      {[]string{"show", "1", "--bytes", "9-1"}, 2, "", "ends before it begins"},
		"no such folder": {[]string{"list", "--dir", filepath.Join(dir, "none")}, 0, "nothing is kept", ""},
	} {
		var stdout, stderr bytes.Buffer
		code := Main(append([]string{"artifact", "--dir", dir}, tc.args...), strings.NewReader(""), &stdout, &stderr, []string{"COPPICE_HOME=" + dir})
		require.Equal(t, tc.code, code, "%s: %s%s", name, stdout.String(), stderr.String())
		require.Contains(t, stdout.String(), tc.out, name)
		require.Contains(t, stderr.String(), tc.told, name)
	}
	for text, want := range map[string][2]int64{"": {}, "10": {10, 10}, "10-": {10, 0}, "-20": {0, 20}, "10-20": {10, 20}} {
		first, last, err := parseRange("--lines", text)
		require.NoError(t, err, text)
		require.Equal(t, want, [2]int64{first, last}, text)
	}
	for _, text := range []string{"-", "0", "-0", "1-x", "1-2-3", " 1", "9223372036854775808"} {
		_, _, err := parseRange("--lines", text)
		require.Error(t, err, text)
	}
}

// TestWithoutATerminal what needs one says what does not.
func TestWithoutATerminal(t *testing.T) {
	for command, want := range map[string]string{
		"repl": "repl needs a terminal; use run for scripts and pipes",
		"top":  "top needs a terminal; coppice sessions list prints the same once",
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, Main([]string{command}, strings.NewReader(""), &stdout, &stderr, nil))
		require.Contains(t, stderr.String(), want)
	}
}

// TestTokenFiles: one is made for its owner alone, and one that others can read, or that
// holds none, is refused.
func TestTokenFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "token")
	made, err := readToken(t.Context(), path)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(made), 16)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again, err := readToken(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, made, again)
	for name, tc := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"readable":    {"0123456789abcdef", 0o640, "can be read by others: chmod 600 it"},
		"short":       {"0123456789", 0o600, "holds no token of at least 16 characters"},
		"with spaces": {"0123456789 abcdef", 0o600, "holds no token"},
		"empty":       {"", 0o600, "holds no token"},
		"endless":     {strings.Repeat("x", maxToken+1), 0o600, "read the token"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o600))
		require.NoError(t, os.Chmod(path, tc.mode))
		_, err := readToken(t.Context(), path)
		require.ErrorContains(t, err, tc.want, name)
	}
}
