//go:build engines

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/test/testpython"
)

// sandboxed is a cluster that has taken examples/kubernetes/sandboxes as it is: a real API server,
// the real controller of agent-sandbox, and pods whose containers are processes of this program.
type sandboxed struct {
	*fleettest.AgentSandbox
	api    api
	certs  fleettest.Certificates // of fronts and their clients
	inner  fleettest.Certificates // of sandboxes and fronts
	python string
	port   int
	secret string // the folder of the secret of sandboxes
	shown  string // what they are shown
	front  []string
	config string

	mu    sync.Mutex
	next  int
	rooms map[string]*room // by address; guarded by mu
}

// room is the container of a pod.
type room struct {
	home, work string
	args       []string
	env        []string
	cmd        *exec.Cmd
	out        bytes.Buffer
	gone       chan struct{}
}

func newSandboxed(t *testing.T) *sandboxed {
	t.Helper()
	k := fleettest.StartKubernetes(t)
	s := &sandboxed{api: newAPI(t, k), certs: fleettest.NewCertificates(t), inner: fleettest.NewCertificates(t), python: testpython.Path(t), port: freePorts(t, 1)[0], secret: t.TempDir(), rooms: map[string]*room{}}
	s.fill(t)
	for _, o := range examples(t, ".") {
		if o.Kind == "Namespace" {
			s.api.take(t, o, http.StatusCreated)
		}
	}
	s.AgentSandbox = fleettest.StartAgentSandbox(t, k, "agents", s.run)
	for _, o := range examples(t, "sandboxes") {
		s.api.take(t, o, http.StatusCreated)
		if o.Kind == "Deployment" {
			s.front = o.Spec.Template.Spec.Containers[0].Args
		}
	}
	s.config = k.Config(t, s.api.account(t, "coppice-front"), "agents")
	return s
}

// fill makes the secret of sandboxes.
func (s *sandboxed) fill(t *testing.T) {
	t.Helper()
	for name, of := range map[string]string{"tls.crt": s.inner.SandboxCert, "tls.key": s.inner.SandboxKey, "ca.crt": s.inner.CA} {
		data, err := os.ReadFile(of)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(s.secret, name), data, 0o440)) //nolint:gosec // as a secret is mounted
	}
	program, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), program, "token", "create", "--tokens", filepath.Join(s.secret, "tokens.json"), "--tenant", "front")
	c.Env = append(os.Environ(), asNode+"=1", "COPPICE_HOME="+t.TempDir())
	out, err := c.Output()
	require.NoError(t, err)
	s.shown = strings.TrimSpace(string(out))
	require.NoError(t, os.Chmod(filepath.Join(s.secret, "tokens.json"), 0o440)) //nolint:gosec // as above
}

// run is the kubelet: it runs what is in a pod on an address of its own, with folders of the test in
// the place of its volumes.
func (s *sandboxed) run(p fleettest.Pod) (string, func(), error) {
	var spec struct {
		InitContainers []struct{ Command []string }
		Containers     []struct{ Command, Args []string }
	}
	if err := json.Unmarshal(p.Spec, &spec); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "sandbox-")
	if err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	s.next++
	ip := fmt.Sprintf("127.77.%d.%d", s.next/250, 2+s.next%250)
	s.mu.Unlock()
	r := &room{home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	run := filepath.Join(dir, "run")
	for _, one := range []string{r.home, r.work, run} {
		err = errors.Join(err, os.Mkdir(one, 0o700))
	}
	here := strings.NewReplacer("/secret", s.secret, "/run/coppice", run, "0.0.0.0:7443", fmt.Sprintf("%s:%d", ip, s.port), "/work", r.work)
	if out, failed := exec.Command("sh", "-c", here.Replace(spec.InitContainers[0].Command[2])).CombinedOutput(); failed != nil { //nolint:gosec // it is that of the example
		return "", nil, fmt.Errorf("%w: %s", failed, out)
	}
	r.args = []string{"serve", "--addr", "127.0.0.1:0", "--backend", "runner"}
	for _, arg := range spec.Containers[0].Args {
		r.args = append(r.args, here.Replace(arg))
	}
	r.env = append(os.Environ(), asNode+"=1", "COPPICE_HOME="+r.home, "COPPICE_PYTHON="+s.python)
	if err = errors.Join(err, r.start()); err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	s.rooms[ip] = r
	s.mu.Unlock()
	return ip, func() {
		r.kill()
		_ = os.RemoveAll(dir) // what is left is in the folder of temporary files
	}, nil
}

// start starts the container, and returns when its server is ready.
func (r *room) start() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	r.cmd, r.gone = exec.Command(program, r.args...), make(chan struct{}) //nolint:gosec // it is this program
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = r.env, &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		return err
	}
	gone := r.gone
	go func() { // ends with the process, which kill ends
		_ = r.cmd.Wait()
		close(gone)
	}()
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		data, err := os.ReadFile(r.record())
		var at struct{ URL string }
		if err == nil && json.Unmarshal(data, &at) == nil {
			if resp, err := http.Get(at.URL + "/readyz"); err == nil { //nolint:noctx,gosec // of a process of this test
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					return nil
				}
			}
		}
		select {
		case <-gone:
			return fmt.Errorf("the server of a sandbox has ended: %s", r.out.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("the server of a sandbox is not ready")
}

func (r *room) kill() {
	_ = r.cmd.Process.Kill()
	<-r.gone
}

// startFront starts a front with the arguments of the example, the rights of its account, and what
// the test has in place of its secret.
func (s *sandboxed) startFront(t *testing.T, name string) *node {
	t.Helper()
	more := url.Values{"kubeconfig": {s.config}, "port": {fmt.Sprint(s.port)}}
	here := strings.NewReplacer(
		"lifetime=24h", "lifetime=24h&"+more.Encode(), "0.0.0.0:7443", fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0]),
		"/run/fleet/inner/tls.crt", s.inner.ClientCert, "/run/fleet/inner/tls.key", s.inner.ClientKey, "/run/fleet/inner/ca.crt", s.inner.CA,
		"/run/fleet/tls.crt", s.certs.Cert, "/run/fleet/tls.key", s.certs.Key, "/run/fleet/ca.crt", s.certs.CA,
	)
	args := []string{"front", "--addr", "127.0.0.1:0"}
	for _, arg := range s.front {
		args = append(args, here.Replace(arg))
	}
	return launch(t, name, args, "COPPICE_SANDBOX_TOKEN="+s.shown)
}

// record is the path of what tells of the server.
func (r *room) record() string { return filepath.Join(r.home, ".coppice", "serve.json") }
