package fleettest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// AgentSandbox is the controller of agent-sandbox, with its definitions in an API server, and what
// stands in for the rest of a cluster. It ends with the test.
type AgentSandbox struct {
	*Process
	api       *api
	namespace string
	run       func(Pod) (ip string, stop func(), err error)

	mu   sync.Mutex
	pods map[string]*pod // by UID; guarded by mu
}

// Pod is one that is to run.
type Pod struct {
	Metadata struct {
		Name, UID         string
		Labels            map[string]string
		DeletionTimestamp string
		OwnerReferences   []struct{ UID string }
	}
	Spec   json.RawMessage
	Status struct {
		Phase, PodIP string
	}
}

// pod is one that runs.
type pod struct {
	name, ip string
	stop     func()
}

// StartAgentSandbox starts the controller for a namespace that is there. Of pods, run is the
// kubelet: it starts what is in one, and returns where that is; stop ends it.
func StartAgentSandbox(t *testing.T, k *Kubernetes, namespace string, run func(Pod) (ip string, stop func(), err error)) *AgentSandbox {
	t.Helper()
	path, definitions := program(t, "COPPICE_TEST_AGENT_SANDBOX"), program(t, "COPPICE_TEST_AGENT_SANDBOX_CRDS")
	a := &AgentSandbox{api: newAPI(t, k), namespace: namespace, run: run, pods: map[string]*pod{}}
	files, err := filepath.Glob(filepath.Join(definitions, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("COPPICE_TEST_AGENT_SANDBOX_CRDS has no definitions: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		a.api.must(t, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/yaml", text)
	}
	until(t, "the definitions of agent-sandbox are served", func() bool {
		for _, at := range []string{a.in("extensions.agents.x-k8s.io/v1alpha1", "sandboxclaims"), a.in("extensions.agents.x-k8s.io/v1alpha1", "sandboxtemplates"), a.in("extensions.agents.x-k8s.io/v1alpha1", "sandboxwarmpools"), a.in("agents.x-k8s.io/v1alpha1", "sandboxes")} {
			if status, _, err := a.api.do(t.Context(), http.MethodGet, at, "", nil); err != nil || status != http.StatusOK {
				return false
			}
		}
		return true
	})
	at := ports(t, 1)[0]
	a.Process = &Process{name: "agent-sandbox-controller", ready: answers(t, "http://"+at+"/readyz", "", nil), args: []string{
		path, "--kubeconfig", k.Config(t, k.Token, namespace), "--extensions", "--leader-elect=false",
		"--metrics-bind-address", "0", "--health-probe-bind-address", at, "--sandbox-claim-concurrent-workers", "4", "--sandbox-concurrent-workers", "4",
	}}
	t.Cleanup(func() { a.finish(t) })
	a.Process.Start(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() { // ends with the test, which waits for it
		defer close(ended)
		a.cluster(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		for _, p := range a.pods {
			p.stop()
		}
	})
	return a
}

// in is where the objects of a kind are.
func (a *AgentSandbox) in(group, kind string) string {
	return "/apis/" + group + "/namespaces/" + a.namespace + "/" + kind
}

// Apply has the API server take an object, strictly, as kubectl would.
func (a *AgentSandbox) Apply(t *testing.T, group, kind, name string, object []byte) {
	t.Helper()
	a.api.must(t, http.MethodPatch, a.in(group, kind)+"/"+name+"?fieldManager=test&fieldValidation=Strict", "application/apply-patch+yaml", object)
}

// Running are the names of pods that run, and where each is.
func (a *AgentSandbox) Running() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string]string{}
	for _, p := range a.pods {
		all[p.name] = p.ip
	}
	return all
}

// End has a pod come to its end, as one does whose machine had no memory left for it.
func (a *AgentSandbox) End(t *testing.T, name string) {
	t.Helper()
	a.api.must(t, http.MethodPatch, "/api/v1/namespaces/"+a.namespace+"/pods/"+name+"/status", "application/merge-patch+json", []byte(`{"status":{"phase":"Failed","message":"evicted","conditions":[{"type":"Ready","status":"False"}]}}`))
}

// Delete deletes a pod, as whoever empties its machine does.
func (a *AgentSandbox) Delete(t *testing.T, name string) {
	t.Helper()
	a.api.must(t, http.MethodDelete, "/api/v1/namespaces/"+a.namespace+"/pods/"+name, "", nil)
}

// cluster does what the rest of a cluster does, until ctx ends: it runs pods, and collects what
// belongs to objects that are gone.
func (a *AgentSandbox) cluster(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		a.collect(ctx)
		a.kubelet(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// kubelet starts the pods that do not run, and ends those that are gone.
func (a *AgentSandbox) kubelet(ctx context.Context) {
	list, ok := a.list(ctx, "/api/v1/namespaces/"+a.namespace+"/pods")
	if !ok {
		return
	}
	there := map[string]bool{}
	for _, p := range list {
		there[p.Metadata.UID] = true
		if a.has(p.Metadata.UID) || p.Status.Phase == "Failed" {
			continue
		}
		ip, stop, err := a.run(p)
		if err != nil {
			continue // it is tried again
		}
		a.mu.Lock()
		a.pods[p.Metadata.UID] = &pod{name: p.Metadata.Name, ip: ip, stop: stop}
		a.mu.Unlock()
		status := fmt.Sprintf(`{"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}],"conditions":[{"type":"Ready","status":"True"}]}}`, ip, ip)
		_, _, _ = a.api.do(ctx, http.MethodPatch, "/api/v1/namespaces/"+a.namespace+"/pods/"+p.Metadata.Name+"/status", "application/merge-patch+json", []byte(status)) // a pod that is gone is ended below
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for uid, p := range a.pods {
		if !there[uid] {
			p.stop()
			delete(a.pods, uid)
		}
	}
}

func (a *AgentSandbox) has(uid string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[uid] != nil
}

// collect deletes what belongs to an object that is gone.
func (a *AgentSandbox) collect(ctx context.Context) {
	kinds := []string{a.in("extensions.agents.x-k8s.io/v1alpha1", "sandboxwarmpools"), a.in("extensions.agents.x-k8s.io/v1alpha1", "sandboxtemplates"), a.in("extensions.agents.x-k8s.io/v1alpha1", "sandboxclaims"), a.in("agents.x-k8s.io/v1alpha1", "sandboxes"), "/api/v1/namespaces/" + a.namespace + "/pods", "/api/v1/namespaces/" + a.namespace + "/services"}
	// What is owned is listed first, so that its owner, which was there before it, is among the
	// objects that are listed after it.
	lists := map[string][]Pod{}
	for _, at := range slices.Backward(kinds) {
		list, ok := a.list(ctx, at)
		if !ok {
			return
		}
		lists[at] = list
	}
	there := map[string]bool{}
	for list := range maps.Values(lists) {
		for _, o := range list {
			there[o.Metadata.UID] = true
		}
	}
	for at, list := range lists {
		for _, o := range list {
			if refs := o.Metadata.OwnerReferences; len(refs) == 0 || there[refs[0].UID] {
				continue
			}
			only := fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":%q}}`, o.Metadata.UID)
			_, _, _ = a.api.do(ctx, http.MethodDelete, at+"/"+o.Metadata.Name, "application/json", []byte(only)) // it is tried again
		}
	}
}

// list lists objects, as much of them as counts here.
func (a *AgentSandbox) list(ctx context.Context, at string) ([]Pod, bool) {
	var all struct{ Items []Pod }
	status, data, err := a.api.do(ctx, http.MethodGet, at, "", nil)
	return all.Items, err == nil && status == http.StatusOK && json.Unmarshal(data, &all) == nil
}

// api is an administrator's way to an API server.
type api struct {
	k      *Kubernetes
	client *http.Client
}

func newAPI(t *testing.T, k *Kubernetes) *api {
	t.Helper()
	pem, err := os.ReadFile(k.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &api{k, &http.Client{Transport: transport}}
}

// do makes a request.
func (a *api) do(ctx context.Context, method, path, form string, body []byte) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.k.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.k.Token)
	if form != "" {
		req.Header.Set("Content-Type", form)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// must is do for what the server has to take.
func (a *api) must(t *testing.T, method, path, form string, body []byte) {
	t.Helper()
	status, answer, err := a.do(t.Context(), method, path, form, body)
	if err != nil || status >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s %v", method, path, status, strings.TrimSpace(string(answer)), err)
	}
}

// until waits for something of another process.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	end := time.NewTimer(10 * Patience)
	defer end.Stop()
	for !is() {
		select {
		case <-end.C:
			t.Fatalf("it did not come to it that %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
