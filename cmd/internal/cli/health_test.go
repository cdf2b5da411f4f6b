package cli

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
)

// TestHealth: the exit code is 0 for a server that takes requests and 1 for any other.
func TestHealth(t *testing.T) {
	const well = `{"status":"ok","version":"1.2.0","backend":"runner","pid":7,"sessions":2,"executions":1,"hibernated":3}`
	for name, tc := range map[string]struct {
		answer    string
		args      []string
		code      int
		out, told string
	}{
		"well":             {well, nil, 0, "ok: process 7 at http://", ""},
		"all of the line":  {well, nil, 0, ", version 1.2.0, runner backend, 2 sessions, 1 execution, 3 on disk\n", ""},
		"as JSON":          {well, []string{"--json"}, 0, `{"healthy":true,"url":"http://`, ""},
		"without a token":  {`{"status":"ok"}`, nil, 0, " lives\n", ""},
		"about to end":     {`{"status":"draining"}`, nil, 1, "", "is draining: it takes no more requests"},
		"that, as JSON":    {`{"status":"draining"}`, []string{"--json"}, 1, `{"healthy":false,"url":"http://`, ""},
		"not well":         {`{"error":{"code":"bad_request","message":"no"}}`, nil, 1, "", "does not say that it is well: no"},
		"not a server":     {`hello`, nil, 1, "", "does not say that it is well: GET api/health: read the answer"},
		"a wrong address":  {well, []string{"--url", "ftp://x"}, 2, "", "--url: the server's URL"},
		"no time at all":   {well, []string{"--timeout", "0"}, 2, "", "--timeout"},
		"a word too many":  {well, []string{"now"}, 2, "", "unknown command"},
		"a different door": {well, []string{"--url", "http://127.0.0.1:1"}, 1, "", "the server at http://127.0.0.1:1 does not say that it is well"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, map[string]string{"GET /api/health": tc.answer})
			code, out, told := p.run("", append([]string{"health"}, tc.args...)...)
			require.Equal(t, tc.code, code, "%s%s", out, told)
			require.Contains(t, out, tc.out)
			require.Contains(t, told, tc.told)
		})
	}
}

// TestReadiness: a server that is well may let nothing begin.
func TestReadiness(t *testing.T) {
	for status, want := range map[int]int{http.StatusOK: 0, http.StatusServiceUnavailable: 1} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path == "/readyz" {
				w.WriteHeader(status)
			}
			_, _ = w.Write([]byte(`{"status":"ok","ok":true}`))
		}))
		p := newPlace(t, nil)
		code, out, told := p.run("", "health", "--ready", "--url", s.URL)
		require.Equal(t, want, code, out+told)
		if want != 0 {
			require.Contains(t, told, "lets nothing begin at the moment")
		}
		code, _, _ = p.run("", "health", "--url", s.URL)
		require.Equal(t, 0, code, "it lives")
		s.Close()
	}
}

// TestHealthOfASilentServer: one that takes a connection and says nothing is not well.
func TestHealthOfASilentServer(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() }) // nothing was said over it
	p := newPlace(t, nil)
	code, out, told := p.run("", "health", "--url", "http://"+listener.Addr().String(), "--timeout", "0.1")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, told, "has not answered in 100ms")
}

// TestHealthTellsItsToken only to the address that was named.
func TestHealthTellsItsToken(t *testing.T) {
	var heard []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = append(heard, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(`{"status":"ok"}`))
	}))
	t.Cleanup(s.Close)
	p := newPlace(t, nil) // the record there has a token, which is another server's
	code, _, told := p.run("", "health", "--url", s.URL)
	require.Zero(t, code, told)
	require.Equal(t, []string{""}, heard)
}

// TestHealthWaits for a server that comes up, and for one that has ended to be followed by another.
func TestHealthWaits(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 1:
			_, _ = w.Write([]byte(`{"status":"draining"}`))
		case 2:
			http.Error(w, "", http.StatusBadGateway)
		default:
			_, _ = w.Write([]byte(`{"status":"ok"}`))
		}
	}))
	t.Cleanup(s.Close)
	p := newPlace(t, nil)
	code, out, told := p.run("", "health", "--url", s.URL, "--wait", "10m")
	require.Zero(t, code, told)
	require.Contains(t, out, "ok: the server at "+s.URL)
	require.EqualValues(t, 3, asked.Load())

	for _, args := range [][]string{{"--url", "http://127.0.0.1:1"}, nil} {
		p := newPlace(t, nil)
		p.home = t.TempDir() // where no server has written down where it is
		code, out, told := p.run("", append([]string{"health", "--wait", "0.3"}, args...)...)
		require.Equal(t, 1, code)
		require.Empty(t, out)
		require.Contains(t, told, "after 300ms: ")
	}
	code, _, told = p.run("", "health", "--url", "ftp://x", "--wait", "10m")
	require.Equal(t, 2, code, told)
	code, _, told = p.run("", "health", "--wait", "-1")
	require.Equal(t, 2, code, told)
}

// TestExport prints for a shell what other clients have to find, from a server that serves them.
func TestExport(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"GET /api/health": `{"status":"ok","version":"1.2.0"}`, "GET /e2b/sandboxes": `[]`, "GET /jupyter/api": `{"version":"2"}`,
	}
	p := newPlace(t, answers)
	code, out, told := p.run("", "health", "--export", "e2b")
	require.Zero(t, code, told)
	record, _, err := client.ReadRecord(filepath.Join(p.home, ".coppice", "serve.json"))
	require.NoError(t, err)
	require.Equal(t, "export E2B_API_URL="+record.URL+"/e2b\nexport E2B_SANDBOX_URL="+record.URL+"/e2b\nexport E2B_API_KEY="+record.Token+"\n", out)
	code, out, told = p.run("", "health", "--wait", "1m", "--export", "jupyter")
	require.Zero(t, code, told)
	require.Equal(t, "export JUPYTER_GATEWAY_URL="+record.URL+"/jupyter\nexport JUPYTER_GATEWAY_AUTH_TOKEN="+record.Token+"\n", out)

	code, out, told = p.run("", "health", "--url", record.URL+"/", "--export", "jupyter")
	require.Equal(t, 2, code, "nothing is exported without a token")
	require.Empty(t, out)
	require.Contains(t, told, "set COPPICE_TOKEN")
	var stdout, stderr bytes.Buffer
	code = Main([]string{"health", "--url", record.URL + "/", "--export", "jupyter"}, strings.NewReader(""), &stdout, &stderr, []string{"COPPICE_TOKEN=t", "COPPICE_HOME=" + p.home})
	require.Zero(t, code, stderr.String())
	require.Contains(t, stdout.String(), "="+record.URL+"/jupyter\n", "with one slash")
	require.Equal(t, []string{"export E2B_API_KEY='a $(b)'"}, clientKinds["e2b"].exports("http://x", "a $(b)")[2:], "a shell runs nothing of a token")

	delete(answers, "GET /e2b/sandboxes")
	p = newPlace(t, answers)
	code, out, told = p.run("", "health", "--wait", "1h", "--export", "e2b")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, told, "does not serve clients of e2b: start it with coppice serve --e2b")
	answers["GET /e2b/sandboxes"] = `hello`
	code, _, told = newPlace(t, answers).run("", "health", "--export", "e2b")
	require.Equal(t, 1, code)
	require.Contains(t, told, "whether it serves clients of e2b")
	for _, args := range [][]string{{"--export", "mcp"}, {"--export", "e2b", "--json"}} {
		code, _, told = p.run("", append([]string{"health"}, args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, told, "--export prints what a shell reads")
	}
}
