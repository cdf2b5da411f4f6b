package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
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
		})
	}
}
