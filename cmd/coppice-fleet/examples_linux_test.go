//go:build engines

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/fleet/kubelease"
)

// paths are where the objects of a kind are.
var paths = map[string]string{
	"Namespace": "/api/v1/namespaces", "ServiceAccount": "/api/v1/namespaces/agents/serviceaccounts", "PersistentVolumeClaim": "/api/v1/namespaces/agents/persistentvolumeclaims", "Service": "/api/v1/namespaces/agents/services",
	"Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/agents/roles", "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/agents/rolebindings",
	"StatefulSet": "/apis/apps/v1/namespaces/agents/statefulsets", "PodDisruptionBudget": "/apis/policy/v1/namespaces/agents/poddisruptionbudgets",
	"Deployment":      "/apis/apps/v1/namespaces/agents/deployments",
	"SandboxTemplate": "/apis/extensions.agents.x-k8s.io/v1alpha1/namespaces/agents/sandboxtemplates", "SandboxWarmPool": "/apis/extensions.agents.x-k8s.io/v1alpha1/namespaces/agents/sandboxwarmpools",
	"NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/agents/networkpolicies", "ServiceMonitor": "/apis/monitoring.coreos.com/v1/namespaces/agents/servicemonitors",
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

	set := a.apply(t, "coppice-0", examples(t, "."), http.StatusCreated)
	a.apply(t, "coppice-1", examples(t, "kept"), http.StatusOK)

	config := k.Config(t, a.account(t, "coppice"), "agents")
	elsewhere, err := url.Parse("kubernetes://default?" + url.Values{"kubeconfig": {config}}.Encode())
	require.NoError(t, err)
	_, _, err = open(t.Context(), cli.DirectoryOptions{URLs: []*url.URL{elsewhere}, Logger: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, kubelease.ErrForbidden, "it may do nothing in another namespace")
	asTheExample(t, set, config)
}

// apply has the API server take objects, and a pod of their StatefulSet, which it returns. again is
// the status for that when it is there.
func (a api) apply(t *testing.T, pod string, all []object, again int) (set object) {
	t.Helper()
	for _, o := range all {
		if o.Kind == "StatefulSet" {
			set = o
			a.take(t, o, again)
			continue
		}
		a.take(t, o, http.StatusCreated)
	}
	var template struct {
		Spec struct{ Template map[string]any }
	}
	require.NoError(t, json.Unmarshal(set.data, &template))
	made := template.Spec.Template
	made["apiVersion"], made["kind"] = "v1", "Pod"
	made["metadata"] = map[string]any{"name": pod, "labels": map[string]string{"app": "coppice"}}
	data, err := json.Marshal(made)
	require.NoError(t, err)
	status, answer, warnings := a.do(t, http.MethodPost, "/api/v1/namespaces/agents/pods?fieldValidation=Strict", "application/json", data)
	require.Equal(t, http.StatusCreated, status, string(answer))
	require.Empty(t, warnings)
	return set
}

// take has the API server take an object, strictly and without a warning. want is the status for
// it.
func (a api) take(t *testing.T, o object, want int) {
	t.Helper()
	require.Contains(t, paths, o.Kind)
	at := paths[o.Kind] + "/" + o.Metadata.Name + "?fieldManager=test&fieldValidation=Strict"
	var (
		status   int
		answer   []byte
		warnings []string
	)
	require.Eventually(t, func() bool { // the definition of a ServiceMonitor takes a moment
		status, answer, warnings = a.do(t, http.MethodPatch, at, "application/apply-patch+yaml", o.data)
		return status != http.StatusNotFound
	}, patience, 100*time.Millisecond)
	require.Equal(t, want, status, "%s %s: %s", o.Kind, o.Metadata.Name, answer)
	require.Empty(t, warnings, "%s %s", o.Kind, o.Metadata.Name)
}

// account is the token of a service account.
func (a api) account(t *testing.T, name string) string {
	t.Helper()
	status, answer, _ := a.do(t, http.MethodPost, "/api/v1/namespaces/agents/serviceaccounts/"+name+"/token", "application/json", []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest"}`))
	require.Equal(t, http.StatusCreated, status, string(answer))
	var account struct{ Status struct{ Token string } }
	require.NoError(t, json.Unmarshal(answer, &account))
	return account.Status.Token
}

// asTheExample runs a node with the arguments of the example.
func asTheExample(t *testing.T, set object, config string) {
	t.Helper()
	e := newExample(t, set, url.Values{"kubeconfig": {config}})
	one := e.node("coppice-0")
	require.True(t, strings.HasPrefix(one.run("e1", "1", 0).header.Get("Coppice-Node"), "coppice-0-"))
	container := set.Spec.Template.Spec.Containers[0]
	e.ask(one, container.ReadinessProbe.Exec.Command)
	e.ask(one, container.LivenessProbe.Exec.Command)
	e.ask(one, container.Lifecycle.PreStop.Exec.Command)
	<-one.gone
}
