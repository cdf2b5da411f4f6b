package kernelserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/pyenv"
)

const (
	patience = 3 * time.Minute
	// hostRole makes the test binary launch a gateway with the interpreter in
	// this variable and tell about it, so that a test can kill it.
	hostRole = "COPPICE_TEST_HOST_PYTHON"
)

func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "python") {
		// Not os.Exit: under the race detector it sleeps for a second.
		syscall.Exit(playGateway(os.Args[0], os.Args[1:]))
	}
	if python := os.Getenv(hostRole); python != "" {
		playHost(python)
	}
	goleak.VerifyTestMain(m)
}

// told is what a playing host says of its gateway.
type told struct {
	URL, Token string
	PID        int
}

func playHost(python string) {
	s, err := kernelserver.Launch(context.Background(), kernelserver.Options{Runtime: pyenv.Runtime{Path: python, Env: os.Environ()}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(told{URL: s.URL(), Token: s.Token(), PID: s.Identity().PID})
	forever()
}

// fake is how a test's gateway behaves. The interpreter is a link to the test
// binary, with this as JSON beside it.
type fake struct {
	// Prints is what it says first; {token} and {port} are filled in.
	Prints string
	// Exits makes it end at once with Code. Only the first Times starts do.
	Exits bool
	Code  int
	Times int
	// Deaf never answers, Stubborn ignores SIGTERM, Foreign answers as another
	// server would.
	Deaf, Stubborn, Foreign bool
}

func (f fake) install(t testing.TB) pyenv.Runtime {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python")
	data, err := json.Marshal(f)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".fake", data, 0o600))
	exe, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(exe, path))
	return pyenv.Runtime{Path: path, Env: []string{"PATH=/bin", "HOME=/nowhere"}}
}

// starts counts how often a fake was started.
func starts(t testing.TB, rt pyenv.Runtime) int {
	t.Helper()
	data, err := os.ReadFile(rt.Path + ".starts")
	require.NoError(t, err)
	return len(data)
}

func playGateway(self string, args []string) int {
	var f fake
	data, err := os.ReadFile(self + ".fake")
	if err != nil || json.Unmarshal(data, &f) != nil {
		return 99
	}
	log, err := os.OpenFile(self+".starts", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 98
	}
	_, _ = log.WriteString(".")
	n, err := log.Seek(0, io.SeekCurrent)
	if err != nil {
		return 98
	}
	port, dir := flag(args, "--KernelGatewayApp.port"), os.Getenv("JUPYTER_DATA_DIR")
	token := os.Getenv("KG_AUTH_TOKEN")
	fmt.Fprint(os.Stdout, strings.NewReplacer("{token}", token, "{port}", port).Replace(f.Prints))
	if f.Exits && (f.Times == 0 || int(n) <= f.Times) {
		return f.Code
	}
	if f.Stubborn {
		signal.Ignore(syscall.SIGTERM)
	}
	if !f.Deaf {
		var lc net.ListenConfig
		l, err := lc.Listen(context.Background(), "tcp4", "127.0.0.1:"+port)
		if err != nil {
			return 97
		}
		server := http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get("Authorization") != "token "+token:
				w.WriteHeader(http.StatusUnauthorized)
			case f.Foreign:
				_, _ = w.Write([]byte(`{"kernelspecs":{"python3":{"spec":{"argv":["/usr/bin/python3"]}}}}`))
			default:
				spec, _ := os.ReadFile(filepath.Join(dir, "kernels/python3/kernel.json"))
				fmt.Fprintf(w, `{"kernelspecs":{"python3":{"spec":%s}}}`, spec)
			}
		})}
		go func() { _ = server.Serve(l) }() // ends with the process
	}
	forever()
	return 0
}

func flag(args []string, name string) string {
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, name+"="); ok {
			return v
		}
	}
	return ""
}

func forever() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	<-c
}

// launch starts a server in a directory of the test's own and stops it with it.
func launch(t *testing.T, o kernelserver.Options) *kernelserver.Server {
	t.Helper()
	if o.TempDir == "" {
		o.TempDir = shortDir(t)
	}
	s, err := kernelserver.Launch(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

// shortDir is a temporary directory whose name leaves room for sockets, which
// that of t.TempDir does not.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cpt-*")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func emptyDir(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// realPython returns an interpreter with the packages of a kernel gateway.
func realPython(t testing.TB) pyenv.Runtime {
	t.Helper()
	python := os.Getenv("COPPICE_TEST_PYTHON")
	if python == "" {
		var err error
		python, err = filepath.Abs("../../.cache/python/bin/python")
		require.NoError(t, err)
		_, err = os.Stat(python)
		require.NoError(t, err, "this test needs a Python with a kernel gateway: run make test-env, or set COPPICE_TEST_PYTHON")
	}
	rt, err := pyenv.Resolve(t.Context(), pyenv.Options{Python: python})
	require.NoError(t, err)
	return rt
}

// firstLine reads a line that a child prints.
func firstLine(t *testing.T, r *os.File) string {
	t.Helper()
	require.NoError(t, r.SetReadDeadline(time.Now().Add(patience)))
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	return line
}
