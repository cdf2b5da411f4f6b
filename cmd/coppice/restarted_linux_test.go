package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// TestAClientOverADeploy: a server is asked to end and another one is started, at another address
// and with another token. The client that was there before goes on, with its variables, also with
// a call that was made while there was no server.
func TestAClientOverADeploy(t *testing.T) {
	t.Parallel()
	p := newReplaced(t)
	first := p.start("--addr", "127.0.0.1:0", "--backend", "runner", "--hibernate", "lossless")
	c := first.serves()
	at, token := c.URL(), c.Token()
	run := func(code string) (string, messages.Result, error) {
		return run(t.Context(), c, client.Execute{Session: "s", Cells: []messages.Cell{{Code: code}}})
	}
	_, _, err := run("x = 40")
	require.NoError(t, err)
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	first.over(0)
	second := p.start("--addr", "127.0.0.1:0", "--backend", "runner", "--hibernate", "lossless") // which does not serve yet
	text, result, err := run("print(x + 2)")
	require.NoError(t, err)
	require.Equal(t, "42\n", text)
	require.Equal(t, messages.StateRestored, result.State)
	require.NotEqual(t, at, c.URL())
	require.NotEqual(t, token, c.Token())
	second.ends()
}

// TestAServerThatIsKilledRunsNothingTwice: the answer to a request to run code is lost, as the
// server is killed that runs it. The next one has the same address and token, and the client asks
// it: it has the call if it keeps sessions, and else nobody knows what became of the code. It is
// not run again. A request that was lost on its way is.
func TestAServerThatIsKilledRunsNothingTwice(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		forgets, ends bool   // the server keeps no sessions; it is killed
		code          string // of the error, "" for none
	}{
		"kept":      {false, true, ""},
		"forgotten": {true, true, "lost"},
		"no answer": {true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newReplaced(t)
			file, token := filepath.Join(p.home, "ran"), strings.Repeat("t", 32)
			p.env, p.forgets = []string{"COPPICE_TOKEN=" + token}, tc.forgets
			s := p.start("--addr", "127.0.0.1:0", "--backend", "runner")
			var at atomic.Value
			at.Store(s.serves().URL())
			var begins atomic.Int64
			way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				first := r.Method == http.MethodPost && begins.Add(1) == 1
				to, err := url.Parse(at.Load().(string))
				if err != nil {
					t.Error(err)
				}
				if !first {
					httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
					return
				}
				httputil.NewSingleHostReverseProxy(to).ServeHTTP(httptest.NewRecorder(), r)
				if tc.ends {
					for { // until the code has run
						if _, err := os.Stat(file); err == nil {
							break
						}
						<-time.After(time.Millisecond)
					}
					s.kill()
					at.Store(p.start("--addr", "127.0.0.1:0", "--backend", "runner").serves().URL())
				}
				panic(http.ErrAbortHandler)
			}))
			defer way.Close()
			c, err := client.New(client.Options{URL: way.URL, Token: token, Patience: patience})
			require.NoError(t, err)
			defer c.Close()
			code := fmt.Sprintf("with open(%q, 'a') as f: print('ran', file=f, flush=True)\nprint('after')", file)
			text, _, err := run(t.Context(), c, client.Execute{Session: "s", Cells: []messages.Cell{{Code: code}}})
			if tc.code == "" {
				require.NoError(t, err)
				require.Equal(t, "after\n", text)
			} else {
				var told *client.Error
				require.ErrorAs(t, err, &told)
				require.Equal(t, tc.code, told.Code)
			}
			ran, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, "ran\n", string(ran))
			if tc.ends { // its sockets are gone with the next server
				left, err := filepath.Glob(filepath.Join(p.home, ".coppice", "run", fmt.Sprintf("*-%d.sock", s.cmd.Process.Pid)))
				require.NoError(t, err)
				require.Empty(t, left)
			}
		})
	}
}

// TestAServerThatDoesNotComeUp: sessions that were kept are those of the next server that does,
// whatever the one between them failed at. So is the call that runs.
func TestAServerThatDoesNotComeUp(t *testing.T) {
	t.Parallel()
	p := newReplaced(t)
	first := p.start("--addr", "127.0.0.1:0", "--backend", "runner")
	c := first.serves()
	_, _, err := run(t.Context(), c, client.Execute{Session: "s", Cells: []messages.Cell{{Code: "x = 40"}}})
	require.NoError(t, err)
	x, err := c.Start(t.Context(), client.Execute{Session: "runs", Cells: []messages.Cell{{Code: "y = input() + input()"}, {Code: "print(y + '!')"}}, AllowStdin: true})
	require.NoError(t, err)
	var open string                                      // the question that waits
	for e, err := range c.Events(t.Context(), x.ID, 0) { // until it asks for the second time
		require.NoError(t, err)
		if q, asks := e.(messages.InputRequest); asks && open != "" {
			require.NotEqual(t, open, q.ID)
			open = q.ID
			break
		} else if asks {
			open = q.ID
			_, err := c.Answer(t.Context(), x.ID, q.ID, "y")
			require.NoError(t, err)
		}
	}
	first.kill()

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	page := filepath.Join(p.home, ".coppice", "run", "serve.html") // the page to sign in
	for name, tc := range map[string]struct {
		args  []string
		spoil func() (mend func())
	}{
		"the address is taken": {[]string{"--addr", taken.Addr().String()}, func() func() { return func() {} }},
		"a file cannot be written": {[]string{"--addr", "127.0.0.1:0"}, func() func() {
			require.NoError(t, os.RemoveAll(page))
			require.NoError(t, os.MkdirAll(filepath.Join(page, "in the way"), 0o700))
			return func() { require.NoError(t, os.RemoveAll(page)) }
		}},
	} {
		mend := tc.spoil()
		failed := p.start(append(tc.args, "--backend", "runner")...)
		failed.over(1)
		require.NotEmpty(t, failed.words(), name)
		mend()
	}

	second := p.start("--addr", "127.0.0.1:0", "--backend", "runner")
	c = second.serves()
	text, result, err := run(t.Context(), c, client.Execute{Session: "s", Cells: []messages.Cell{{Code: "print(x + 2)"}}})
	require.NoError(t, err)
	require.Equal(t, "42\n", text)
	require.Equal(t, messages.StateKept, result.State)
	var printed string
	answered := false
	for e, err := range c.Events(t.Context(), x.ID, 0) {
		require.NoError(t, err)
		switch e := e.(type) {
		case messages.InputRequest:
			if e.ID == open && !answered { // which is told as it was, and asked again
				_, err := c.Answer(t.Context(), x.ID, e.ID, "es")
				require.NoError(t, err)
				answered = true
			}
		case messages.Stream:
			printed += e.Text
		case messages.Final:
			require.Equal(t, messages.OutcomeOK, e.Result.Outcome)
		}
	}
	require.Equal(t, "yes!\n", printed)
	second.ends()
}

// TestARunWhoseServerIsKilled: coppice run says what became of the code, in its exit code, on
// standard output and in words, whether another server has begun since or not.
func TestARunWhoseServerIsKilled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		again bool // another server is started
		form  string
		told  string
	}{
		"none runs":             {false, "--json", "does not answer any more"},
		"none runs, its events": {false, "--events", "does not answer any more"},
		"another one runs":      {true, "--json", "the server was started again while the code ran: what became of it is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newReplaced(t)
			p.forgets = true
			s := p.start("--addr", "127.0.0.1:0", "--backend", "runner")
			s.serves()
			began := filepath.Join(p.home, "began")
			bin, err := exec.LookPath("coppice")
			require.NoError(t, err)
			code := fmt.Sprintf("import time; open(%q, 'w').close(); time.sleep(60)", began)
			cmd := exec.Command(bin, "run", "--session", "k", tc.form, "-c", code)
			cmd.Env = append(os.Environ(), "HOME="+p.home, "COPPICE_HOME="+p.home, "GORACE=atexit_sleep_ms=0")
			cmd.Dir = p.home
			var out, told strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &told
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool { _, err := os.Stat(began); return err == nil }, patience, 20*time.Millisecond)
			s.kill()
			if tc.again {
				p.start("--addr", "127.0.0.1:0", "--backend", "runner").serves()
			}
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Wait(), &exit, out.String())
			require.Equal(t, 70, exit.ExitCode(), told.String())
			require.Contains(t, told.String(), tc.told)
			require.Contains(t, told.String(), "before you run it again")
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			var last messages.Result // the whole of --json, and the last line of --events
			require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
			require.Equal(t, messages.OutcomeLost, last.Outcome)
			require.Contains(t, last.Reason, tc.told)
		})
	}
}
