package jupyter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// realGateway is the Jupyter Kernel Gateway that all tests of this binary
// share. The first test that needs it starts it, TestMain ends it.
var realGateway struct {
	once  sync.Once
	cmd   *exec.Cmd
	dir   string
	url   string
	token string
	err   error
}

// realClient returns a client of the real gateway.
func realClient(t testing.TB) *jupyter.Client {
	t.Helper()
	g := &realGateway
	python := testpython.Path(t)
	g.once.Do(func() { g.err = startRealGateway(python) })
	require.NoError(t, g.err)
	c, err := jupyter.NewClient(jupyter.Options{URL: g.url, Token: g.token, SpoolDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// realKernel starts a kernel of the real gateway.
func realKernel(t testing.TB) *jupyter.Kernel {
	t.Helper()
	return startKernel(t, realClient(t))
}

// launcher starts ipykernel without a bound on the queue of its iopub socket.
// With the default of 1000 messages, a kernel that prints and flushes in a loop
// is faster than its server now and then, and ZeroMQ drops what does not fit:
// output is lost between the two, and nothing tells (zmq_setsockopt(3),
// ZMQ_SNDHWM). A client cannot do anything about it.
const launcher = `
from ipykernel.kernelapp import IPKernelApp

class App(IPKernelApp):
    def init_iopub(self, context):
        context.sndhwm = 0
        super().init_iopub(context)

App.launch_instance()
`

// startRealGateway starts a gateway with the settings that Coppice gives its
// own. The kernels share one ZeroMQ context, as by default: without that
// (MultiKernelManager.shared_context), a server that loses or deletes a kernel
// destroys sockets that its event loop watches, and later requests that get the
// same descriptors fail with status 500 ("fd … added twice").
func startRealGateway(python string) (err error) {
	g := &realGateway
	// Sockets of kernels live here, and a socket's path is short.
	if g.dir, err = os.MkdirTemp("", "cpj"); err != nil {
		return err
	}
	spec := filepath.Join(g.dir, "data", "kernels", "test")
	if err := os.MkdirAll(spec, 0o700); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{
		"argv": []string{
			python, "-c", launcher, "-f", "{connection_file}", "--HistoryManager.enabled=False",
		},
		"display_name": "test", "language": "python", "interrupt_mode": "signal",
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(spec, "kernel.json"), body, 0o600); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(g.dir, "log"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()

	g.token = messages.NewID()
	g.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	g.cmd = exec.Command(
		// As "-m kernel_gateway" does, without what takes a second to be imported, and is not used.
		python, "-c", "import runpy, sys; sys.modules['rfc3987_syntax'] = None; runpy.run_module('kernel_gateway', run_name='__main__', alter_sys=True)",
		"--KernelGatewayApp.ip=127.0.0.1", fmt.Sprintf("--KernelGatewayApp.port=%d", port),
		"--KernelGatewayApp.port_retries=0",
		"--KernelGatewayApp.default_kernel_name=test",
		"--KernelRestarter.restart_limit=0", "--KernelRestarter.time_to_dead=0.5",
		"--ZMQChannelsWebsocketConnection.limit_rate=False",
		"--KernelManager.transport=ipc",
	)
	g.cmd.Env = append(os.Environ(),
		"KG_AUTH_TOKEN="+g.token, "KG_ENV_PROCESS_WHITELIST=HOME,IPYTHONDIR,JUPYTER_RUNTIME_DIR",
		"HOME="+g.dir, "IPYTHONDIR="+filepath.Join(g.dir, "ipython"),
		"JUPYTER_PATH="+filepath.Join(g.dir, "data"),
		"JUPYTER_CONFIG_DIR="+filepath.Join(g.dir, "config"), "JUPYTER_RUNTIME_DIR="+filepath.Join(g.dir, "run"),
	)
	g.cmd.Stdout, g.cmd.Stderr = log, log
	if err := g.cmd.Start(); err != nil {
		return err
	}

	c, err := jupyter.NewClient(jupyter.Options{URL: g.url, Token: g.token, RequestTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		err := c.Healthy(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			said, _ := os.ReadFile(filepath.Join(g.dir, "log"))
			return fmt.Errorf("the gateway did not come up: %w\n%s", err, strings.TrimSpace(string(said)))
		case <-look.C:
		}
	}
}

// stopRealGateway ends the gateway, which ends its kernels, and what it wrote.
func stopRealGateway() {
	g := &realGateway
	if g.cmd != nil && g.cmd.Process != nil {
		if g.cmd.Process.Signal(syscall.SIGTERM) != nil {
			_ = g.cmd.Process.Kill()
		}
		kill := time.AfterFunc(10*time.Second, func() { _ = g.cmd.Process.Kill() })
		_ = g.cmd.Wait()
		kill.Stop()
	}
	if g.dir != "" {
		_ = os.RemoveAll(g.dir)
	}
}
