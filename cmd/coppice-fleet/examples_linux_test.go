//go:build engines

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/fleet/kubelease"
)

// object is one of a file, as much as a test needs of it.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct{ Name, Namespace string }
	Spec       struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args      []string
					Lifecycle struct {
						PreStop struct{ Exec struct{ Command []string } }
					}
					ReadinessProbe, LivenessProbe struct{ Exec struct{ Command []string } }
				}
			}
		}
	}

	data []byte // as JSON
}

// paths are where the objects of a kind are.
var paths = map[string]string{
	"Namespace": "/api/v1/namespaces", "ServiceAccount": "/api/v1/namespaces/agents/serviceaccounts", "Service": "/api/v1/namespaces/agents/services",
	"Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/agents/roles", "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/agents/rolebindings",
	"StatefulSet": "/apis/apps/v1/namespaces/agents/statefulsets", "PodDisruptionBudget": "/apis/policy/v1/namespaces/agents/poddisruptionbudgets",
	"NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/agents/networkpolicies", "ServiceMonitor": "/apis/monitoring.coreos.com/v1/namespaces/agents/servicemonitors",
}

// examples are the objects in examples/kubernetes, in the order of kubectl.
func examples(t *testing.T) []object {
	t.Helper()
	files, err := filepath.Glob("../../examples/kubernetes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []object
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for part := range strings.SplitSeq(string(text), "\n---\n") {
			var o object
			o.data, err = yaml.YAMLToJSONStrict([]byte(part))
			require.NoError(t, err, name)
			require.NoError(t, json.Unmarshal(o.data, &o), name)
			all = append(all, o)
		}
	}
	return all
}

// api is an administrator's way to an API server.
type api struct {
	k      *fleettest.Kubernetes
	client *http.Client
}

func newAPI(t *testing.T, k *fleettest.Kubernetes) api {
	t.Helper()
	pem, err := os.ReadFile(k.CA)
	require.NoError(t, err)
	c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	c.RootCAs.AppendCertsFromPEM(pem)
	return api{k, &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}}
}

// do makes a request; warnings are what the server says besides.
func (a api) do(t *testing.T, method, path, form string, body []byte) (status int, answer []byte, warnings []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.k.URL+path, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+a.k.Token)
	req.Header.Set("Content-Type", form)
	resp, err := a.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, answer, resp.Header.Values("Warning")
}

// TestExamplesOfKubernetes: a real API server takes what examples/kubernetes has, without a
// field that it does not know and without a warning; the pods keep to the profile of their
// namespace; the rights of the account are those that the directory of a fleet needs, and no
// more; a node runs with the arguments that stand there, and does what its probes and its
// preStop hook ask.
func TestExamplesOfKubernetes(t *testing.T) {
	t.Parallel()
	k := fleettest.StartKubernetes(t)
	a := newAPI(t, k)
	definition, err := os.ReadFile(os.Getenv("COPPICE_TEST_SERVICE_MONITOR"))
	require.NoError(t, err, "make test-engines sets COPPICE_TEST_SERVICE_MONITOR")
	status, answer, _ := a.do(t, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/yaml", definition)
	require.Equal(t, http.StatusCreated, status, string(answer))

	var set object
	for _, o := range examples(t) {
		require.Contains(t, paths, o.Kind)
		if o.Kind == "StatefulSet" {
			set = o
		}
		at := paths[o.Kind] + "/" + o.Metadata.Name + "?fieldManager=test&fieldValidation=Strict"
		var warnings []string
		require.Eventually(t, func() bool { // the definition of a ServiceMonitor takes a moment
			status, answer, warnings = a.do(t, http.MethodPatch, at, "application/apply-patch+yaml", o.data)
			return status != http.StatusNotFound
		}, patience, 100*time.Millisecond)
		require.Equal(t, http.StatusCreated, status, "%s %s: %s", o.Kind, o.Metadata.Name, answer)
		require.Empty(t, warnings, "%s %s", o.Kind, o.Metadata.Name)
	}
	var template struct {
		Spec struct{ Template map[string]any }
	}
	require.NoError(t, json.Unmarshal(set.data, &template))
	pod := template.Spec.Template
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	pod["metadata"] = map[string]any{"name": "coppice-0", "labels": map[string]string{"app": "coppice"}}
	made, err := json.Marshal(pod)
	require.NoError(t, err)
	status, answer, warnings := a.do(t, http.MethodPost, "/api/v1/namespaces/agents/pods?fieldValidation=Strict", "application/json", made)
	require.Equal(t, http.StatusCreated, status, string(answer))
	require.Empty(t, warnings)

	status, answer, _ = a.do(t, http.MethodPost, "/api/v1/namespaces/agents/serviceaccounts/coppice/token", "application/json", []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest"}`))
	require.Equal(t, http.StatusCreated, status, string(answer))
	var account struct{ Status struct{ Token string } }
	require.NoError(t, json.Unmarshal(answer, &account))
	config := k.Config(t, account.Status.Token, "agents")
	elsewhere, err := url.Parse("kubernetes://default?" + url.Values{"kubeconfig": {config}}.Encode())
	require.NoError(t, err)
	_, _, err = open(t.Context(), cli.DirectoryOptions{URLs: []*url.URL{elsewhere}, Logger: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, kubelease.ErrForbidden, "it may do nothing in another namespace")
	asTheExample(t, set, config)
}

// asTheExample runs a node with the arguments of the example.
func asTheExample(t *testing.T, set object, config string) {
	t.Helper()
	certs := fleettest.NewCertificates(t)
	container := set.Spec.Template.Spec.Containers[0]
	n := &nodes{t: t, work: t.TempDir(), servers: "-"}
	here := strings.NewReplacer(
		"--fleet=kubernetes://agents", "--fleet=kubernetes://agents?"+url.Values{"kubeconfig": {config}}.Encode(),
		"$(POD_NAME)", "coppice-0", "0.0.0.0:7443", fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0]),
		"/run/fleet/tls.crt", certs.Cert, "/run/fleet/tls.key", certs.Key, "/run/fleet/ca.crt", certs.CA, "/work", n.work,
	)
	var args []string
	for _, arg := range container.Args {
		args = append(args, here.Replace(arg))
	}
	one := n.node("example", args...)
	require.True(t, strings.HasPrefix(one.run("e1", "1", 0).header.Get("Coppice-Node"), "coppice-0-"))
	program, err := os.Executable()
	require.NoError(t, err)
	ask := func(command []string) {
		t.Helper()
		require.Equal(t, "coppice-fleet", command[0])
		c := exec.CommandContext(t.Context(), program, command[1:]...)
		c.Env = append(os.Environ(), asNode+"=1", "COPPICE_HOME="+one.home, "COPPICE_TOKEN="+token)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%q: %s", command, out)
	}
	ask(container.ReadinessProbe.Exec.Command)
	ask(container.LivenessProbe.Exec.Command)
	ask(container.Lifecycle.PreStop.Exec.Command)
	<-one.gone
}
