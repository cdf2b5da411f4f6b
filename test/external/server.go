package external

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// Kind is a kind of server.
type Kind string

// The kinds.
const (
	KernelGateway     Kind = "jupyter_kernel_gateway"
	JupyterServer     Kind = "jupyter_server"
	EnterpriseGateway Kind = "jupyter_enterprise_gateway"
)

// Kinds returns every kind in a full run (COPPICE_TEST_FULL), else those that
// are named: Enterprise Gateway needs an environment of its own, and a test
// against all of them takes its time.
func Kinds(short ...Kind) []Kind {
	if os.Getenv("COPPICE_TEST_FULL") == "" {
		return short
	}
	return []Kind{KernelGateway, JupyterServer, EnterpriseGateway}
}

// Options says how to start a server. The zero value of a field is its default.
type Options struct {
	// BasePath is where the API is: "/base". "": at the root.
	BasePath string
	// Token opens it. "": one of its own.
	Token string
	// CertFile and KeyFile make it serve https; Kernel Gateway only.
	CertFile, KeyFile string
	// Env is added to the server's environment.
	Env []string
	// Args are added to its command line.
	Args []string
	// Kernelspecs are further kernelspecs: files by path, as
	// "toy/kernel.json"; "{python}" in them is the interpreter's path.
	Kernelspecs map[string]string
}

// Server is one that runs.
type Server struct {
	URL, Token string
	// Dir is its home.
	Dir string
	// PID is its process.
	PID int
	log string
}

// Log returns what the server wrote so far.
func (s *Server) Log() string {
	text, _ := os.ReadFile(s.log)
	return string(text)
}

// Start starts a server and ends it, with its kernels, after the test.
func Start(tb testing.TB, kind Kind, o Options) *Server {
	tb.Helper()
	python := testpython.Path(tb)
	if kind == EnterpriseGateway {
		python = testpython.Enterprise(tb)
	}
	// Sockets of kernels may live here, and a socket's path is short.
	dir, err := os.MkdirTemp("", "cpx")
	must(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	for path, text := range o.Kernelspecs {
		path = filepath.Join(dir, "data", "kernels", path)
		must(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		must(tb, os.WriteFile(path, []byte(strings.ReplaceAll(text, "{python}", python)), 0o600))
	}
	s := &Server{Token: cmp.Or(o.Token, messages.NewID()), Dir: dir, log: filepath.Join(dir, "log")}
	// Kernel Gateway takes its token out of its environment before it starts a
	// kernel. The others do not, so theirs is in a file.
	must(tb, os.MkdirAll(filepath.Join(dir, "config"), 0o700))
	for file, text := range map[string]string{
		"jupyter_server_config.json":             `{"IdentityProvider": {"token": "` + s.Token + `"}}`,
		"jupyter_enterprise_gateway_config.json": `{"EnterpriseGatewayApp": {"auth_token": "` + s.Token + `"}}`,
	} {
		must(tb, os.WriteFile(filepath.Join(dir, "config", file), []byte(text), 0o600))
	}
	for attempt := 1; ; attempt++ {
		// The port is free now, and may be taken a moment later.
		if err = s.start(tb, kind, python, o); err == nil {
			return s
		}
		if attempt == 3 {
			tb.Fatalf("start %s: %v\n%s", kind, err, s.Log())
		}
	}
}

func (s *Server) start(tb testing.TB, kind Kind, python string, o Options) error {
	tb.Helper()
	port := freePort(tb)
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), python, append(arguments(kind, port, o), o.Args...)...)
	cmd.Env = append(environment(), "HOME="+s.Dir, "IPYTHONDIR="+filepath.Join(s.Dir, "ipython"),
		"JUPYTER_PATH="+filepath.Join(s.Dir, "data"), "JUPYTER_DATA_DIR="+filepath.Join(s.Dir, "own"),
		"JUPYTER_CONFIG_DIR="+filepath.Join(s.Dir, "config"), "JUPYTER_RUNTIME_DIR="+filepath.Join(s.Dir, "run"),
		"KG_CERTFILE="+o.CertFile, "KG_KEYFILE="+o.KeyFile)
	if kind == KernelGateway {
		cmd.Env = append(cmd.Env, "KG_ENV_PROCESS_WHITELIST=HOME,IPYTHONDIR,JUPYTER_RUNTIME_DIR", "KG_AUTH_TOKEN="+s.Token)
	}
	cmd.Env = append(cmd.Env, o.Env...)
	cmd.Dir = s.Dir
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(tb, err)
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	must(tb, cmd.Start())
	s.PID = cmd.Process.Pid
	ended := make(chan struct{})
	go func() { // it ends with the process, which stop ends
		_ = cmd.Wait()
		close(ended)
	}()
	scheme := "http"
	if o.CertFile != "" {
		scheme = "https"
	}
	s.URL = fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, port, o.BasePath)
	if err := s.answers(ended); err != nil {
		_ = cmd.Process.Kill()
		<-ended
		return err
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		<-ended
		kill.Stop()
	})
	return nil
}

// runs is "python -m" without a package that takes more than a second of processor to be
// imported, for formats that no server uses.
const runs = "import runpy, sys; sys.modules['rfc3987_syntax'] = None; runpy.run_module('%s', run_name='__main__', alter_sys=True)"

// arguments are the command line of a server, without its kernels' settings:
// those are the defaults.
func arguments(kind Kind, port int, o Options) []string {
	base := o.BasePath
	if base == "" {
		base = "/"
	}
	switch kind {
	case JupyterServer:
		return []string{
			"-c", fmt.Sprintf(runs, "jupyter_server"), "--ServerApp.ip=127.0.0.1", fmt.Sprintf("--ServerApp.port=%d", port),
			"--ServerApp.port_retries=0", "--ServerApp.allow_root=True", "--ServerApp.open_browser=False", "--ServerApp.base_url=" + base,
		}
	case EnterpriseGateway:
		return []string{
			"-m", "enterprise_gateway", "--EnterpriseGatewayApp.ip=127.0.0.1", fmt.Sprintf("--EnterpriseGatewayApp.port=%d", port),
			"--EnterpriseGatewayApp.port_retries=0", "--EnterpriseGatewayApp.base_url=" + base,
		}
	default:
		return []string{
			"-c", fmt.Sprintf(runs, "kernel_gateway"), "--KernelGatewayApp.ip=127.0.0.1", fmt.Sprintf("--KernelGatewayApp.port=%d", port),
			"--KernelGatewayApp.port_retries=0", "--KernelGatewayApp.base_url=" + base,
		}
	}
}

// environment is that of the test, without settings of Jupyter.
func environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "JUPYTER") && !strings.HasPrefix(name, "KG_") && !strings.HasPrefix(name, "EG_") && !strings.HasPrefix(name, "KERNEL_") {
			env = append(env, kv)
		}
	}
	return env
}

// answers waits until the server answers to its token: its port may be another's by now.
func (s *Server) answers(ended <-chan struct{}) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	late, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	own := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // of a test, on loopback
	defer own.CloseIdleConnections()
	for {
		err := s.known(late, &http.Client{Transport: own})
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("its process has ended")
		case <-late.Done():
			return err
		case <-look.C:
		}
	}
}

// known asks for what only the server with the token answers.
func (s *Server) known(ctx context.Context, c *http.Client) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/kernelspecs", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "token "+s.Token)
	answer, err := c.Do(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers with %s", answer.Status)
	}
	return nil
}

func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	must(tb, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
