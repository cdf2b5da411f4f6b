package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet/fleettest"
)

// tenant is a client of tenants' servers, over TLS.
type tenant struct {
	t     *testing.T
	http  *http.Client
	token string
}

// ask asks a server at an address until it is not in the middle of something.
func (c tenant) ask(url, method, path, body string, header ...string) answer {
	c.t.Helper()
	var a answer
	require.Eventually(c.t, func() bool {
		r, err := http.NewRequestWithContext(c.t.Context(), method, url+path, strings.NewReader(body))
		require.NoError(c.t, err)
		r.Header.Set("Authorization", "Bearer "+c.token)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := c.http.Do(r)
		require.NoError(c.t, err)
		data, err := io.ReadAll(resp.Body)
		require.NoError(c.t, err)
		require.NoError(c.t, resp.Body.Close())
		a = answer{status: resp.StatusCode, header: resp.Header, body: string(data)}
		return a.status != http.StatusServiceUnavailable || strings.Contains(a.body, "as many as there may be")
	}, patience, 10*time.Millisecond)
	return a
}

// run runs code in a session and waits for its result; epoch 0: none is named. The answer is that of
// the start when it was refused.
func (c tenant) run(url, id, session, code string, epoch int) (a answer, text string) {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"id": id, "session": session, "cells": []any{map[string]any{"code": code}}})
	require.NoError(c.t, err)
	header := []string{"Content-Type", "application/json"}
	if epoch > 0 {
		header = append(header, "Coppice-Epoch", fmt.Sprint(epoch))
	}
	begun := c.ask(url, http.MethodPost, "/api/executions", string(body), header...)
	if begun.status >= http.StatusMultipleChoices {
		return begun, ""
	}
	told := c.ask(url, http.MethodGet, "/api/executions/"+id+"?wait=60", "")
	var e struct {
		Result struct{ Cells []struct{ Output string } }
	}
	require.NoError(c.t, json.Unmarshal([]byte(told.body), &e), told.body)
	require.NotEmpty(c.t, e.Result.Cells, told.body)
	return begun, strings.TrimSpace(e.Result.Cells[0].Output)
}

// TestTenantsOfAFleet: each tenant has the fleet as if it were alone, through any server, also one that
// has no sessions; it begins at all of them with its first request, has as many sessions as it may at
// all together, and goes on in the next epoch when a server is killed.
func TestTenantsOfAFleet(t *testing.T) {
	t.Parallel()
	fleet, certs, ports := newNodes(t), fleettest.NewCertificates(t), freePorts(t, 3)
	tokens, next := filepath.Join(t.TempDir(), "tokens.json"), 0
	fleet.more = func() []string {
		at := fmt.Sprintf("127.0.0.1:%d", ports[next])
		next++
		return []string{
			"--fleet-placement", "spread", "--listen", at, "--tls-cert", certs.Cert, "--tls-key", certs.Key, "--tokens", tokens,
			"--unconfined-tenants", "--isolation", "off", "--fleet-tenant-sessions", "4", "--e2b", "--jupyter",
		}
	}
	program, err := os.Executable()
	require.NoError(t, err)
	pem, err := os.ReadFile(certs.CA)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	t.Cleanup(transport.CloseIdleConnections)
	as := func(name, scope string) tenant {
		cmd := exec.CommandContext(t.Context(), program, "token", "create", "--tokens", tokens, "--tenant", name, "--scope", scope)
		cmd.Env = append(os.Environ(), asNode+"=1", "COPPICE_HOME="+t.TempDir())
		out, err := cmd.Output()
		require.NoError(t, err)
		return tenant{t, &http.Client{Transport: transport}, strings.TrimSpace(string(out))}
	}
	first, reader, second := as("first", "run"), as("first", "read"), as("second", "run")
	a, b := fleet.node("a"), fleet.node("b")
	fleet.node("front", "--fleet-front")
	url := func(i int) string { return fmt.Sprintf("https://127.0.0.1:%d", ports[i]) }
	front := url(2)

	at := map[string]string{} // the node of each session
	for i := range 4 {
		name := fmt.Sprint("s", i)
		begun, text := first.run(front, "begin-"+name, name, fmt.Sprintf("n = %d; n", i), 0)
		require.Equal(t, fmt.Sprint(i), text, begun.body)
		at[name] = begun.header.Get("Coppice-Node")
	}
	for i := range 4 {
		name := fmt.Sprint("s", i)
		for j, from := range []string{url(0), url(1), front} {
			begun, text := first.run(from, fmt.Sprint("again-", name, j), name, "n", 1)
			require.Equal(t, fmt.Sprint(i), text, begun.body)
			require.Equal(t, at[name], begun.header.Get("Coppice-Node"))
		}
	}
	full, _ := first.run(url(0), "one-more", "s4", "1", 0)
	require.Equal(t, "quota", full.code(), full.body)

	// The other one sees none of it, and has names of its own.
	require.Contains(t, first.ask(url(1), http.MethodGet, "/api/sessions", "").body, `"s3"`)
	require.NotContains(t, second.ask(front, http.MethodGet, "/api/sessions", "").body, `"s0"`)
	_, text := second.run(front, "theirs", "s0", "'n' in globals()", 0)
	require.Equal(t, "False", text)
	require.Equal(t, http.StatusNotFound, second.ask(front, http.MethodGet, "/api/executions/begin-s0", "").status)
	require.Equal(t, http.StatusNotFound, second.ask(front, http.MethodGet, "/api/sessions", "", "Coppice-Tenant", "first").status)
	require.NotContains(t, a.get("/api/sessions").body, `"s0"`, "neither does the user of the fleet")

	// Who may read sees what there is at all nodes, and begins nothing.
	require.Contains(t, reader.ask(front, http.MethodGet, "/api/sessions", "").body, `"s3"`)
	refused, _ := reader.run(front, "read", "s0", "1", 1)
	require.Equal(t, http.StatusForbidden, refused.status)
	// A tenant's token is none of the nodes'.
	for _, token := range []string{first.token, "wrong"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/api/sessions", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Coppice-Tenant", "first")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	}

	// E2B's clients, too.
	made := first.ask(front, http.MethodPost, "/e2b/sandboxes", `{"templateID":"base"}`, "X-API-Key", first.token, "Content-Type", "application/json")
	require.Equal(t, http.StatusServiceUnavailable, made.status, "it has all that it may have: %s", made.body)
	first.ask(front, http.MethodDelete, "/api/sessions/s3", "")
	require.Eventually(t, func() bool {
		made = first.ask(front, http.MethodPost, "/e2b/sandboxes", `{"templateID":"base"}`, "X-API-Key", first.token, "Content-Type", "application/json")
		return made.status == http.StatusCreated
	}, patience, 10*time.Millisecond, "it was given up")
	require.NotContains(t, second.ask(url(0), http.MethodGet, "/e2b/v2/sandboxes", "", "X-API-Key", second.token).body, "base")

	dies, lives := b, url(0)
	if strings.Contains(at["s0"], a.home) || strings.HasPrefix(at["s0"], "a-") {
		dies, lives = a, url(1)
	}
	dies.signal(syscall.SIGKILL)
	<-dies.gone
	gone, _ := first.run(lives, "after", "s0", "n", 1)
	require.Equal(t, "epoch_gone", gone.code(), gone.body)
	_, text = first.run(front, "anew", "s0", "'n' in globals()", 2)
	require.Equal(t, "False", text)
}
