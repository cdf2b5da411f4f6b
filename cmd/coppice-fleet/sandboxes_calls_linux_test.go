//go:build engines

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/messages"
)

// TestSandboxes: each workspace, and each session in none, has a pod of its own, which the real
// controller of agent-sandbox makes of a claim of ours; two fronts with the rights and the arguments of
// the example send calls on to it; and what becomes of it is told. A start of all that takes
// long: so it is one test.
func TestSandboxes(t *testing.T) {
	t.Parallel()
	s := newSandboxed(t)
	a, b := s.startFront(t, "a"), s.startFront(t, "b")
	t.Run("a workspace", func(t *testing.T) { s.workspace(t, a.of(t), b.of(t)) })
	t.Run("many at once", func(t *testing.T) { s.manyAtOnce(t, a.of(t), b.of(t)) })
	t.Run("another life", func(t *testing.T) { s.anotherLife(t, a.of(t), b.of(t)) })
	t.Run("ended meanwhile", func(t *testing.T) { s.endedMeanwhile(t, a.of(t), b.of(t)) })
	t.Run("a pod that ends", func(t *testing.T) { s.podThatEnds(t, a.of(t), b.of(t)) })
	t.Run("the client", func(t *testing.T) { s.theClient(t, a, b) })
	t.Run("strangers", func(t *testing.T) { s.strangers(t, a.of(t)) })
	t.Run("what it costs", func(t *testing.T) { s.costs(t, a.of(t)) })
	for _, front := range []*node{a, b} {
		front.signal(syscall.SIGTERM)
		<-front.gone
		require.Zero(t, front.cmd.ProcessState.ExitCode(), front.out.String())
		require.NotContains(t, front.out.String(), s.shown, "no token is logged")
		require.NotContains(t, front.out.String(), token)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rooms {
		r.kill()
		require.NotContains(t, r.out.String(), s.shown)
	}
}

// of is a node for a part of a test.
func (n *node) of(t *testing.T) *node {
	return &node{t: t, url: n.url, home: n.home, pid: n.pid, cmd: n.cmd, gone: n.gone}
}

// epoch is what an answer says of itself.
func (a answer) epoch(t *testing.T) int {
	t.Helper()
	e, err := strconv.Atoi(a.header.Get("Coppice-Epoch"))
	require.NoError(t, err, "%d %s", a.status, a.body)
	return e
}

// starts starts an execution of a cell; more is what stands in its body besides.
func (n *node) starts(id, code, more string, epoch int) answer {
	n.t.Helper()
	return n.settled(http.MethodPost, "/api/executions", fmt.Sprintf(`{"id":%q,"cells":[{"code":%q}],%s}`, id, code, more), epoch)
}

// at waits for the result of an execution by its Location.
func (n *node) at(begun answer) messages.Result {
	n.t.Helper()
	require.Less(n.t, begun.status, 300, begun.body)
	for {
		now := n.settled(http.MethodGet, begun.header.Get("Location")+"&wait=30", "", 0)
		require.Equal(n.t, http.StatusOK, now.status, now.body)
		var x client.Execution
		require.NoError(n.t, json.Unmarshal([]byte(now.body), &x))
		if x.Result != nil {
			return *x.Result
		}
	}
}

// prints is the output of a cell.
func (n *node) prints(id, code, more string, epoch int) (string, answer) {
	n.t.Helper()
	begun := n.starts(id, code, more, epoch)
	result := n.at(begun)
	require.Len(n.t, result.Cells, 1)
	return strings.TrimSpace(result.Cells[0].Output), begun
}

// claims are those of the cluster, by key.
func (s *sandboxed) claims(t *testing.T) map[string]string {
	t.Helper()
	status, data, _ := s.api.do(t, http.MethodGet, "/apis/extensions.agents.x-k8s.io/v1alpha1/namespaces/agents/sandboxclaims", "", nil)
	require.Equal(t, http.StatusOK, status)
	var list struct {
		Items []struct {
			Metadata struct {
				Name, UID   string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, json.Unmarshal(data, &list))
	all := map[string]string{}
	for _, c := range list.Items {
		all[c.Metadata.Annotations["coppice-fleet/key"]] = c.Metadata.UID
	}
	return all
}

// remove deletes the claim of a node's name, as kubectl would.
func (s *sandboxed) remove(t *testing.T, name string) {
	t.Helper()
	status, data, _ := s.api.do(t, http.MethodDelete, "/apis/extensions.agents.x-k8s.io/v1alpha1/namespaces/agents/sandboxclaims/"+name, "application/json", nil)
	require.Equal(t, http.StatusOK, status, string(data))
}

// room is the container of the pod that has a claim.
func (s *sandboxed) room(t *testing.T, name string) *room {
	t.Helper()
	status, data, _ := s.api.do(t, http.MethodGet, "/apis/extensions.agents.x-k8s.io/v1alpha1/namespaces/agents/sandboxclaims/"+name, "", nil)
	require.Equal(t, http.StatusOK, status)
	var c struct {
		Metadata struct{ Annotations map[string]string }
	}
	require.NoError(t, json.Unmarshal(data, &c))
	s.mu.Lock()
	defer s.mu.Unlock()
	for ip, r := range s.rooms {
		if strings.Contains(c.Metadata.Annotations["coppice-fleet/bound"], "//"+ip+":") {
			return r
		}
	}
	t.Fatalf("no pod has the claim %s", name)
	return nil
}

// workspace: a workspace is one sandbox with all that is in it, by either front; a session in none is
// another one.
func (s *sandboxed) workspace(t *testing.T, a, b *node) {
	require.Equal(t, http.StatusNotFound, a.get("/api/workspaces/w").status)
	require.Equal(t, http.StatusBadRequest, a.ask(http.MethodPost, "/api/workspaces", `{"name":"../w"}`, 0).status)
	require.Equal(t, http.StatusNotFound, a.starts("w0", "1", `"session":"s","workspace":"w"`, 0).status)
	require.Empty(t, s.claims(t), "nothing was made for what cannot be")
	made := a.settled(http.MethodPost, "/api/workspaces", `{"name":"w"}`, 0)
	require.Equal(t, http.StatusCreated, made.status, made.body)
	require.Empty(t, made.header.Get("Coppice-Server"))
	put := b.ask(http.MethodPut, "/api/workspaces/w/files?path=x.txt", "forty", 0)
	require.Less(t, put.status, 300, put.body)
	const in = `"session":"s","workspace":"w"`
	_, begun := a.prints("w1", "x = 40", in, 0)
	require.Equal(t, made.header.Get("Coppice-Node"), begun.header.Get("Coppice-Node"))
	require.Contains(t, begun.header.Get("Location"), "workspace=w")
	out, again := b.prints("w2", "print(x + 2, open('x.txt').read())", in, begun.epoch(t))
	require.Equal(t, "42 forty", out)
	require.Equal(t, begun.epoch(t), again.epoch(t))
	require.Equal(t, "forty", a.get("/api/workspaces/w/files?path=x.txt").body)

	out, other := a.prints("n1", "import os; print('x' in globals(), os.path.exists('x.txt'))", `"session":"s"`, 0)
	require.Equal(t, "False False", out)
	require.NotEqual(t, begun.header.Get("Coppice-Node"), other.header.Get("Coppice-Node"))
	require.NotSame(t, s.room(t, begun.header.Get("Coppice-Node")), s.room(t, other.header.Get("Coppice-Node")))
	require.Len(t, s.claims(t), 2)

	for _, front := range []*node{a, b} {
		list := front.get("/api/workspaces")
		require.Contains(t, list.body, `"node":"`+begun.header.Get("Coppice-Node")+`"`)
		require.NotContains(t, list.body, "unreachable")
		require.Equal(t, 2, strings.Count(front.get("/api/sessions").body, `"session":"s"`))
	}
	require.Equal(t, http.StatusNoContent, b.ask(http.MethodDelete, "/api/workspaces/w", "", 0).status)
	require.Equal(t, http.StatusNotFound, a.get("/api/workspaces/w").status)
	require.Equal(t, http.StatusNotFound, a.ask(http.MethodDelete, "/api/workspaces/w", "", 0).status)
	require.Equal(t, http.StatusNoContent, a.ask(http.MethodDelete, "/api/sessions/s", "", 0).status)
	require.Empty(t, s.claims(t))
}

// manyAtOnce: fifty that begin one session at once by two fronts get one interpreter.
func (s *sandboxed) manyAtOnce(t *testing.T, a, b *node) {
	const many = 50
	fronts, answers := []*node{a, b}, make([]answer, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			answers[i] = fronts[i%2].once(http.MethodPost, "/api/executions", fmt.Sprintf(`{"id":"m%d","session":"many","cells":[{"code":"n = globals().get('n', 0) + 1; print(n)"}]}`, i), 0, patience)
		})
	}
	all.Wait()
	var seen []int
	for i, begun := range answers {
		require.NoError(t, begun.err)
		require.Equal(t, answers[0].header.Get("Coppice-Node"), begun.header.Get("Coppice-Node"))
		require.Equal(t, answers[0].epoch(t), begun.epoch(t))
		n, err := strconv.Atoi(strings.TrimSpace(fronts[(i+1)%2].at(begun).Cells[0].Output)) // by the other front
		require.NoError(t, err)
		seen = append(seen, n)
	}
	slices.Sort(seen)
	for i, n := range seen {
		require.Equal(t, i+1, n, "each has counted once, in one interpreter: %v", seen)
	}
}

// anotherLife: a server that was killed and started again in its pod is told as an epoch that is
// over, and nothing runs twice.
func (s *sandboxed) anotherLife(t *testing.T, a, b *node) {
	const in = `"session":"lives"`
	_, begun := a.prints("l1", "x = 1", in, 0)
	was := begun.epoch(t)
	r := s.room(t, begun.header.Get("Coppice-Node"))
	r.kill()
	require.NoError(t, r.start())
	gone := b.starts("l2", "x = 2", in, was)
	require.Equal(t, "epoch_gone", gone.code(), gone.body)
	require.Equal(t, was+1, gone.epoch(t))
	require.Equal(t, "epoch_needed", a.starts("l2", "x = 2", in, 0).code(), "who repeats it does not know")
	require.Equal(t, "lost", a.ask(http.MethodGet, begun.header.Get("Location"), "", 0).code())
	out, _ := a.prints("l3", "print('x' in globals())", in, was+1)
	require.Equal(t, "False", out)
	require.Equal(t, http.StatusNoContent, a.ask(http.MethodDelete, "/api/sessions/lives", "", was+1).status)
}

// endedMeanwhile: what a sandbox answers whose claim was deleted is lost, and a call that knows it is
// refused by the one that comes after it.
func (s *sandboxed) endedMeanwhile(t *testing.T, a, b *node) {
	const in = `"session":"ends"`
	_, begun := a.prints("e1", "x = 1", in, 0)
	long := a.starts("e2", "import time; time.sleep(600)", in, begun.epoch(t))
	require.Equal(t, http.StatusCreated, long.status)
	sent := a.metric("coppice_fleet_forwarded_total")
	waits := make(chan answer, 1)
	go func() {
		waits <- a.once(http.MethodGet, long.header.Get("Location")+"&wait=60", "", 0, patience)
	}()
	require.Eventually(t, func() bool { // it waits there
		return a.metric("coppice_fleet_forwarded_total") != sent
	}, patience, 50*time.Millisecond)
	s.remove(t, begun.header.Get("Coppice-Node"))
	require.Equal(t, "lost", (<-waits).code())
	require.Equal(t, "lost", b.ask(http.MethodGet, long.header.Get("Location"), "", 0).code())
	out, anew := b.prints("e3", "print('x' in globals())", in, 0)
	require.Equal(t, "False", out)
	require.NotEqual(t, begun.epoch(t), anew.epoch(t))
	refused := a.starts("e4", "1", in, begun.epoch(t))
	require.Equal(t, http.StatusConflict, refused.status)
	require.Equal(t, "epoch_gone", refused.code())
	require.Equal(t, anew.epoch(t), refused.epoch(t))
	require.Equal(t, "epoch_gone", a.ask(http.MethodDelete, "/api/sessions/ends", "", begun.epoch(t)).code())
	require.Equal(t, http.StatusNoContent, a.ask(http.MethodDelete, "/api/sessions/ends", "", anew.epoch(t)).status)
}

// podThatEnds: the claim of a pod that came to its end makes room for another one, which knows of it.
func (s *sandboxed) podThatEnds(t *testing.T, a, b *node) {
	const in = `"session":"evicted"`
	_, begun := a.prints("p1", "x = 1", in, 0)
	r := s.room(t, begun.header.Get("Coppice-Node"))
	s.End(t, s.podOf(t, r))
	r.kill()
	refused := a.starts("p2", "x = 2", in, 0)
	require.Equal(t, "epoch_needed", refused.code(), refused.body)
	require.NotEqual(t, begun.epoch(t), refused.epoch(t))
	out, _ := b.prints("p3", "print('x' in globals())", in, refused.epoch(t))
	require.Equal(t, "False", out)
	require.Equal(t, http.StatusNoContent, a.ask(http.MethodDelete, "/api/sessions/evicted", "", 0).status)
}

// podOf is the name of the pod of a container.
func (s *sandboxed) podOf(t *testing.T, r *room) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, ip := range s.Running() {
		if s.rooms[ip] == r {
			return name
		}
	}
	t.Fatal("no pod has the container")
	return ""
}

// theClient: package client, and so the command, needs to know nothing of it.
func (s *sandboxed) theClient(t *testing.T, a, b *node) {
	for i, front := range []*node{a, b} {
		c, err := client.New(client.Options{URL: front.url, Token: token})
		require.NoError(t, err)
		x, err := c.Start(t.Context(), client.Execute{Session: "client", Cells: []messages.Cell{{Code: "n = globals().get('n', 40) + 1; print(n)"}}})
		require.NoError(t, err)
		x, err = c.Wait(t.Context(), x.ID)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(41+i), strings.TrimSpace(x.Result.Cells[0].Output))
		c.Close()
	}
}

// direct is a way to the sandbox of an answer without a front.
func (s *sandboxed) direct(t *testing.T, of answer, cert, key string) func(path, token string) (*http.Response, error) {
	t.Helper()
	at := "https://" + s.Running()[s.podOf(t, s.room(t, of.header.Get("Coppice-Node")))] + ":" + fmt.Sprint(s.port)
	pem, err := os.ReadFile(s.inner.CA)
	require.NoError(t, err)
	c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13, ServerName: fleettest.Sandbox}
	c.RootCAs.AppendCertsFromPEM(pem)
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		require.NoError(t, err)
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	transport := &http.Transport{TLSClientConfig: c}
	t.Cleanup(transport.CloseIdleConnections)
	return func(path, token string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, http.NoBody)
		require.NoError(t, err)
		req.Host = fleettest.Sandbox
		req.Header.Set("Authorization", "Bearer "+token)
		return transport.RoundTrip(req)
	}
}

// strangers: a sandbox lets in who shows the certificate of a front and its token, and its own
// certificate is none of a front.
func (s *sandboxed) strangers(t *testing.T, a *node) {
	_, begun := a.prints("x1", "1", `"session":"strangers"`, 0)
	ask := func(cert, key, token string) (int, error) {
		resp, err := s.direct(t, begun, cert, key)("/api/sessions", token)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	status, err := ask(s.inner.ClientCert, s.inner.ClientKey, s.shown)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	status, err = ask(s.inner.ClientCert, s.inner.ClientKey, token)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, status, "what clients show is nothing here")
	_, err = ask("", "", s.shown)
	require.ErrorContains(t, err, "certificate required")
	_, err = ask(s.inner.SandboxCert, s.inner.SandboxKey, s.shown)
	require.ErrorContains(t, err, "bad certificate")
	_, err = ask(s.certs.ClientCert, s.certs.ClientKey, s.shown)
	require.ErrorContains(t, err, "unknown certificate authority", "a client of fronts is none of sandboxes")
}

// costs says how long a call takes by a front, which looks at the claim twice, and directly.
func (s *sandboxed) costs(t *testing.T, a *node) {
	const calls = 200
	_, begun := a.prints("c1", "1", `"session":"costs"`, 0)
	direct := s.direct(t, begun, s.inner.ClientCert, s.inner.ClientKey)
	for name, ask := range map[string]func() (*http.Response, error){
		"directly": func() (*http.Response, error) { return direct("/api/sessions/costs", s.shown) },
		"by a front": func() (*http.Response, error) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/api/sessions/costs", http.NoBody)
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+token)
			return http.DefaultClient.Do(req)
		},
	} {
		var took []time.Duration
		for range calls {
			begins := time.Now()
			resp, err := ask()
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, errors.Join(err, resp.Body.Close()))
			took = append(took, time.Since(begins))
		}
		slices.Sort(took)
		t.Logf("%s: p50 %v, p99 %v", name, took[calls/2], took[calls*99/100])
	}
}
