package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/test/testpython"
)

// farTest is a server of tenants with real hosts, over TLS.
type farTest struct {
	t      *testing.T
	url    string
	home   string
	tokens access.File
	http   *http.Client
	errs   *bytes.Buffer
}

// certify writes a certificate for 127.0.0.1 and its key into a folder.
func certify(t *testing.T, dir string) (access.Files, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	f := access.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	require.NoError(t, os.WriteFile(f.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(f.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return f, pool
}

// serveFar starts one. Its token of the tenant first is there before it.
func serveFar(t *testing.T) *farTest {
	t.Helper()
	home := t.TempDir()
	files, pool := certify(t, home)
	s := &farTest{t: t, home: home, tokens: access.File{Path: filepath.Join(home, "tokens.json")}, errs: &bytes.Buffer{}}
	_ = s.token("first", httpserver.Run)
	python := testpython.Path(t)
	a := &app{Console: console.New(strings.NewReader(""), io.Discard, s.errs, []string{"COPPICE_HOME=" + home, "PATH=" + os.Getenv("PATH"), "SECRET_OF_THE_SERVER=x"})}
	f := serveFlags{sessions: 4, e2b: true, jupyter: true, listen: listening{addr: "127.0.0.1:0", files: files, tokens: s.tokens.Path, sessions: 6}}
	f.Backend, f.Python = "runner", python
	require.NoError(t, f.listen.check(&f, nil))
	host, err := coppice.Start(t.Context(), coppice.Options{Home: home, Backend: coppice.Runner(coppice.RunnerOptions{}), Python: python})
	require.NoError(t, err)
	_, end, err := a.listenFar(context.Background(), &f, host, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}
	s.url, s.http = f.listen.addr, &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, end())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	return s
}

// token makes one.
func (s *farTest) token(tenant string, scope httpserver.Scope) string {
	s.t.Helper()
	text, _, err := s.tokens.Create(s.t.Context(), tenant, scope, time.Hour)
	require.NoError(s.t, err)
	return text
}

// ask asks with a token; more are pairs of headers.
func (s *farTest) ask(token, method, path, body string, more ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("X-API-Key", token)
	}
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	resp, err := s.http.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(text)
}

// gets asks for what has to be there, and reads it.
func (s *farTest) gets(token, method, path, body string, more ...string) map[string]any {
	s.t.Helper()
	status, text := s.ask(token, method, path, body, more...)
	require.Less(s.t, status, 300, "%s %s: %s", method, path, text)
	got := map[string]any{}
	if text != "" {
		require.NoError(s.t, json.Unmarshal([]byte(text), &got), text)
	}
	return got
}

// run runs code in a session, and returns what it showed.
func (s *farTest) run(token, id, session, code string) string {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"id": id, "session": session, "cells": []map[string]string{{"code": code}}})
	require.NoError(s.t, err)
	s.gets(token, "POST", "/api/executions", string(body))
	for {
		x := s.gets(token, "GET", "/api/executions/"+id+"?wait=30", "")
		if x["state"] == "ended" {
			return x["result"].(map[string]any)["text"].(string)
		}
	}
}

// TestTenantsAreApart: at every door, one tenant finds nothing of another, neither by its
// name nor by its place; and what is another's is answered as what never was.
func TestTenantsAreApart(t *testing.T) {
	s := serveFar(t)
	red, blue := s.token("red", httpserver.Run), s.token("blue", httpserver.Run)

	// What the one has.
	work := strings.TrimSpace(s.run(red, "x1", "job", "import os; open('secret.txt', 'w').write('of red'); os.chmod('secret.txt', 0o666); print(os.getcwd())"))
	require.True(t, strings.HasPrefix(work, filepath.Join(s.home, ".coppice", "tenants")), work)
	place := s.gets(red, "POST", "/api/workspaces", `{"name":"etl","labels":{"team":"red-team"}}`)["folder"].(string)
	s.gets(red, "PUT", "/api/workspaces/etl/files?path=data.txt", "of red", "Content-Type", "application/octet-stream")
	process := s.gets(red, "POST", "/api/workspaces/etl/processes", `{"args":["sleep","600"]}`)["id"].(string)
	box := s.gets(red, "POST", "/e2b/sandboxes", `{"templateID":"base"}`)
	id, key := box["sandboxID"].(string), box["envdAccessToken"].(string)
	kernel := s.gets(red, "POST", "/jupyter/api/kernels", `{"name":"python3"}`)["id"].(string)
	document := s.gets(red, "POST", "/jupyter/api/sessions", `{"path":"a.ipynb","type":"notebook","name":"a","kernel":{"id":"`+kernel+`"}}`)["id"].(string)

	t.Run("names and ids", func(t *testing.T) {
		for _, tc := range [][3]string{
			{"GET", "/api/executions/x1"},
			{"GET", "/api/executions/x1/events"},
			{"POST", "/api/executions/x1/cancel"},
			{"POST", "/api/executions/x1/input", `{"text":"x"}`},
			{"GET", "/api/sessions/job"},
			{"DELETE", "/api/sessions/job"},
			{"POST", "/api/sessions/job/interrupt"},
			{"POST", "/api/sessions/job/reset"},
			{"POST", "/api/sessions/job/fork", `{}`},
			{"POST", "/api/sessions/job/checkpoint"},
			{"GET", "/api/sessions/job?cwd=" + work},
			{"DELETE", "/api/sessions/job?cwd=" + work},
			{"GET", "/api/workspaces/etl"},
			{"PATCH", "/api/workspaces/etl", `{}`},
			{"GET", "/api/workspaces/etl/files?path=data.txt"},
			{"GET", "/api/workspaces/etl/files/list"},
			{"GET", "/api/workspaces/etl/processes"},
			{"GET", "/api/workspaces/etl/processes/" + process},
			{"DELETE", "/api/workspaces/etl/processes/" + process},
			{"GET", "/api/workspaces/etl/processes/" + process + "/events"},
			{"GET", "/api/workspaces/" + id},
			{"GET", "/e2b/sandboxes/" + id},
			{"DELETE", "/e2b/sandboxes/" + id},
			{"POST", "/e2b/sandboxes/" + id + "/timeout", `{"timeout":1}`},
			{"POST", "/e2b/sandboxes/" + id + "/connect", `{"timeout":1}`},
			{"POST", "/e2b/sandboxes/" + id + "/pause"},
			{"GET", "/jupyter/api/kernels/" + kernel},
			{"DELETE", "/jupyter/api/kernels/" + kernel},
			{"GET", "/jupyter/api/kernels/" + kernel + "/channels"},
			{"POST", "/jupyter/api/kernels/" + kernel + "/interrupt"},
			{"GET", "/jupyter/api/sessions/" + document},
			{"DELETE", "/jupyter/api/sessions/" + document},
			{"GET", "/jupyter/api/contents/secret.txt"},
			{"GET", "/jupyter/files/secret.txt"},
			{"GET", "/api/artifacts/0"},
		} {
			method, path, body := tc[0], tc[1], tc[2]
			status, text := s.ask(blue, method, path, body)
			if strings.Contains(path, "cwd=") && status == 422 { // it names a folder that is not the tenant's
				require.NotContains(t, text, "of red", path)
				continue
			}
			require.Equal(t, 404, status, "%s %s: %s", method, path, text)
			// The same of what never was.
			steps := strings.Split(path, "/")
			for i, step := range steps {
				name, query, _ := strings.Cut(step, "?")
				if slices.Contains([]string{"x1", "job", "etl", id, kernel, document}, name) {
					steps[i] = strings.TrimSuffix(strings.Repeat("z", len(name))+"?"+query, "?")
				}
			}
			never := strings.Join(steps, "/")
			status, other := s.ask(blue, method, never, body)
			require.Equal(t, 404, status, never)
			if !strings.Contains(path, process) {
				require.Len(t, other, len(text), "%s: %s is not %s", path, text, other)
			}
		}
		// Ending a workspace that is not there is no error; it ends none.
		_, _ = s.ask(blue, "DELETE", "/api/workspaces/etl", "")
		s.gets(red, "GET", "/api/workspaces/etl", "")
	})

	t.Run("lists and counts", func(t *testing.T) {
		for _, path := range []string{
			"/api/sessions", "/api/sessions?hibernated=true", "/api/executions", "/api/workspaces", "/api/workspaces?label=team=red-team", "/api/checkpoints", "/api/artifacts",
			"/api/tree", "/api/overview", "/api/story?session=job", "/api/health", "/metrics", "/e2b/v2/sandboxes", "/e2b/snapshots",
			"/jupyter/api/kernels", "/jupyter/api/sessions", "/jupyter/api/status", "/jupyter/api/contents",
		} {
			status, text := s.ask(blue, "GET", path, "")
			require.Equal(t, 200, status, path)
			for _, trace := range []string{work, "red-team", "etl", "secret.txt", id, kernel, document, "a.ipynb", "of red"} {
				require.NotContains(t, text, trace, path)
			}
		}
		h := s.gets(blue, "GET", "/api/health", "")
		require.EqualValues(t, 0, h["sessions"])
		require.EqualValues(t, 0, h["executions"])
		require.Empty(t, s.gets(blue, "GET", "/api/sessions", "")["sessions"])
		for _, path := range []string{"/api/notebooks/show", "/api/notebooks/run"} { // a path is opened by the server itself
			status, _ := s.ask(blue, "POST", path, `{"path":"`+work+`/a.ipynb"}`)
			require.Equal(t, 404, status, path)
		}
	})

	t.Run("the same names", func(t *testing.T) {
		require.Contains(t, s.run(blue, "x1", "job", "print('secret' in dir())"), "False")
		s.gets(blue, "POST", "/api/workspaces", `{"name":"etl"}`)
		status, _ := s.ask(blue, "GET", "/api/workspaces/etl/files?path=data.txt", "")
		require.Equal(t, 404, status)
	})

	t.Run("folders", func(t *testing.T) {
		s.run(blue, "links", "job", fmt.Sprintf("import os; os.symlink(%q, 'there'); os.symlink('/nothing/at/all', 'gone'); os.symlink('..', 'up'); os.mkdir('mine')", work))
		refusal := ""
		for _, cwd := range []string{"there", "gone", "up", "nothing", "/root", "/nothing", work, place, "..", "mine/../.."} {
			for _, ask := range [][2]string{
				{"/api/sessions", `{"session":"s","cwd":"` + cwd + `"}`},
				{"/api/executions", `{"session":"s","cwd":"` + cwd + `","cells":[{"code":"1"}]}`},
				{"/api/workspaces/etl/processes", `{"args":["true"],"cwd":"` + cwd + `"}`},
				{"/jupyter/api/kernels", `{"name":"python3","cwd":"` + cwd + `"}`},
			} {
				status, text := s.ask(blue, "POST", ask[0], ask[1])
				require.Contains(t, []int{400, 422}, status, "%s %s: %s", ask[0], cwd, text)
				if ask[0] == "/api/sessions" { // whatever it is, the same words
					text = strings.ReplaceAll(text, cwd, "X")
					if refusal == "" {
						refusal = text
					}
					require.Len(t, strings.Fields(text), len(strings.Fields(refusal)), cwd)
				}
			}
		}
		status, text := s.ask(blue, "POST", "/api/sessions", `{"session":"s","cwd":"mine"}`)
		require.Equal(t, 201, status, text)
		for _, body := range []string{
			`{"name":"w","folder":"` + work + `"}`, `{"name":"w","folder":"mine"}`, `{"name":"w","isolation":{"level":"off"}}`,
			`{"name":"w","isolation":{"read":["/"]}}`, `{"name":"w","isolation":{"network":true}}`, `{"name":"w","isolation":{"private":true}}`,
		} {
			status, text := s.ask(blue, "POST", "/api/workspaces", body)
			require.Equal(t, 422, status, "%s: %s", body, text)
		}
		for _, path := range []string{"there/secret.txt", "../secret.txt"} {
			status, _ := s.ask(blue, "GET", "/jupyter/api/contents/"+path, "")
			require.NotEqual(t, 200, status, path)
		}
	})

	t.Run("code", func(t *testing.T) {
		// What is refused is closed to it; with namespaces of its own, it is not even there,
		// and /dev/shm is its own.
		shared, err := os.CreateTemp("/dev/shm", "coppice-test-*")
		require.NoError(t, err)
		defer os.Remove(shared.Name())
		defer shared.Close()
		written := shared.Name() + "-of-code"
		defer os.Remove(written)
		attack := fmt.Sprintf(`
import os
for what in (lambda: open(%[1]q + '/secret.txt').read(), lambda: os.listdir(%[1]q), lambda: open(%[1]q + '/new', 'w'),
             lambda: open('there/secret.txt').read(), lambda: open(%[3]q).read(), lambda: open(%[4]q).read(), lambda: open(%[5]q).read()):
    try:
        print('LEAK', what())
    except (PermissionError, FileNotFoundError):
        pass
for seen in (lambda: os.listdir(%[2]q), lambda: os.listdir('/dev/shm'), lambda: open(%[6]q, 'w').close()):
    try:
        print('SEEN', seen())
    except PermissionError:
        pass
print('SECRET_OF_THE_SERVER' in os.environ, 'done')`, work, filepath.Dir(filepath.Dir(work)), s.tokens.Path, filepath.Join(s.home, "key.pem"), shared.Name(), written)
		shown := s.run(blue, "attack", "job", attack)
		require.Contains(t, shown, "False done")
		require.NotContains(t, shown, filepath.Base(filepath.Dir(work)))
		require.NotContains(t, shown, filepath.Base(shared.Name()))
		require.NoFileExists(t, written)
		require.NotContains(t, shown, "LEAK")
	})

	t.Run("programs", func(t *testing.T) {
		// A pyvenv.cfg beside a program says where its Python is; a link, where it is itself.
		for path, text := range map[string]string{
			"env/bin/look":   "#!/bin/sh\ncat " + work + "/secret.txt && echo LEAK\nexit 7\n",
			"env/pyvenv.cfg": "home = " + work + "/bin\n",
		} {
			s.gets(blue, "PUT", "/api/workspaces/etl/files?path="+path+"&parents=true", text, "Content-Type", "application/octet-stream")
		}
		for _, args := range []string{`["sh","-c","chmod 700 env/bin/look && mkdir -p far/bin && ln -s ` + work + `/tool far/bin/tool"]`, `["env/bin/look"]`, `["./env/bin/look"]`, `["sh","env/bin/look"]`, `["` + work + `/secret.txt"]`, `["far/bin/tool"]`} {
			status, text := s.ask(blue, "POST", "/api/workspaces/etl/processes", `{"args":`+args+`}`)
			if status != 201 {
				require.Equal(t, 422, status, text)
				continue
			}
			var p struct{ ID string }
			require.NoError(t, json.Unmarshal([]byte(text), &p))
			_, events := s.ask(blue, "GET", "/api/workspaces/etl/processes/"+p.ID+"/events", "")
			require.NotContains(t, events, "LEAK", args)
			require.NotContains(t, events, "of red", args)
		}
	})

	t.Run("sandboxes", func(t *testing.T) {
		for name, headers := range map[string][]string{
			"the key of another":      {"E2b-Sandbox-Id", id},
			"a made up token":         {"E2b-Sandbox-Id", id, "X-Access-Token", strings.Repeat("0", 64)},
			"the token, another's id": {"E2b-Sandbox-Id", "etl", "X-Access-Token", key},
		} {
			status, text := s.ask(blue, "GET", "/e2b/files?path=data.txt", "", headers...)
			require.Contains(t, []int{401, 404, 502}, status, "%s: %s", name, text)
		}
		status, text := s.ask("", "POST", "/e2b/files?path=x.txt", "x", "E2b-Sandbox-Id", id, "X-Access-Token", key, "Content-Type", "application/octet-stream")
		require.Equal(t, 200, status, text)
		look := s.token("red", httpserver.Read)
		weak := s.gets(look, "GET", "/e2b/sandboxes/"+id, "")["envdAccessToken"].(string)
		require.NotEqual(t, key, weak)
		status, _ = s.ask("", "GET", "/e2b/files?path=x.txt", "", "E2b-Sandbox-Id", id, "X-Access-Token", weak)
		require.Equal(t, 200, status, "it looks")
		status, _ = s.ask("", "POST", "/e2b/files?path=x.txt", "x", "E2b-Sandbox-Id", id, "X-Access-Token", weak)
		require.Equal(t, 403, status, "and does no more")
		status, _ = s.ask(look, "GET", "/jupyter/api/kernels/"+kernel+"/channels", "")
		require.Equal(t, 403, status)
	})

	list, err := s.tokens.Load(t.Context())
	require.NoError(t, err)
	for _, one := range list {
		if one.Tenant == "red" {
			_, err := s.tokens.Revoke(t.Context(), one.ID)
			require.NoError(t, err)
		}
	}
	status, _ := s.ask("", "GET", "/e2b/files?path=x.txt", "", "E2b-Sandbox-Id", id, "X-Access-Token", key)
	require.Equal(t, 401, status, "what was made for a token ends with it")
	status, _ = s.ask(red, "GET", "/api/sessions", "")
	require.Equal(t, 401, status)
}
