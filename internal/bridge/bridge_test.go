package bridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/bridge"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *bridge.Server {
	t.Helper()
	s, err := bridge.Start(t.Context(), "")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(s.URL(), "http://127.0.0.1:"), s.URL())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, s.Close(ctx))
	})
	return s
}

func post(ctx context.Context, t *testing.T, s *bridge.Server, method, path, auth, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.URL()+path, bytes.NewBufferString(body))
	require.NoError(t, err)
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { require.NoError(t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// echo serves every call with what it was given.
func echo(_ context.Context, c messages.HostCall) messages.HostResult {
	raw, err := json.Marshal(c)
	if err != nil {
		return messages.HostResult{Error: &messages.HostError{Type: "ValueError", Message: err.Error()}}
	}
	return messages.HostResult{Value: raw, NextSteps: []string{"go on"}}
}

func TestTheWireForm(t *testing.T) {
	t.Parallel()
	s := start(t)
	token := "Bearer " + s.Register("a", echo)
	other := "Bearer " + s.Register("b", func(context.Context, messages.HostCall) messages.HostResult {
		return messages.HostResult{Error: &messages.HostError{Type: "KeyError", Message: "none"}}
	})
	require.NotEqual(t, token, other)
	good := `{"session":"a","run":"1","name":"f","args":{"x":1}}`
	for name, tt := range map[string]struct {
		method, path, auth, body string
		status                   int
		want                     string
	}{
		"a call":              {"POST", bridge.Path, token, good, 200, `{"ok":true,"value":{"id":"","cell":0,"kind":"tool","name":"f","args":{"x":1}},"next_steps":["go on"]}`},
		"a primitive":         {"POST", bridge.Path, token, `{"session":"a","run":"1","name":"f","kind":"primitive"}`, 200, `{"ok":true,"value":{"id":"","cell":0,"kind":"primitive","name":"f","args":{}},"next_steps":["go on"]}`},
		"a failure":           {"POST", bridge.Path, other, `{"session":"b","run":"1","name":"f"}`, 200, `{"ok":false,"error":"none","error_type":"KeyError"}`},
		"no such session":     {"POST", bridge.Path, token, `{"session":"c","run":"7","name":"f"}`, 200, `{"ok":false,"error":"No active Python tool bridge session: c:7","error_type":"HostCallError"}`},
		"another's token":     {"POST", bridge.Path, other, good, 403, `{"ok":false,"error":"the token is that of another session","error_type":"HostCallError"}`},
		"a wrong token":       {"POST", bridge.Path, "Bearer x", good, 403, `{"ok":false,"error":"the token is not that of a session","error_type":"HostCallError"}`},
		"no token":            {"POST", bridge.Path, "", good, 403, `{"ok":false,"error":"the token is not that of a session","error_type":"HostCallError"}`},
		"another scheme":      {"POST", bridge.Path, strings.Replace(token, "Bearer", "token", 1), good, 403, `{"ok":false,"error":"the token is not that of a session","error_type":"HostCallError"}`},
		"no JSON":             {"POST", bridge.Path, token, `{`, 400, `{"ok":false,"error":"Invalid JSON body","error_type":"HostCallError"}`},
		"a list":              {"POST", bridge.Path, token, `[]`, 400, `{"ok":false,"error":"Invalid JSON body","error_type":"HostCallError"}`},
		"a field is missing":  {"POST", bridge.Path, token, `{"session":"a","run":"1"}`, 400, `{"ok":false,"error":"Missing session/run/name","error_type":"HostCallError"}`},
		"another path":        {"POST", "/", token, good, 404, `{"ok":false,"error":"there is only POST /v1/tool","error_type":"HostCallError"}`},
		"another method":      {"GET", bridge.Path, token, "", 404, `{"ok":false,"error":"there is only POST /v1/tool","error_type":"HostCallError"}`},
		"more than it takes":  {"POST", bridge.Path, token, `{"session":"` + strings.Repeat("a", 17<<20) + `"}`, 400, `{"ok":false,"error":"Invalid JSON body","error_type":"HostCallError"}`},
		"a value that is not": {"POST", bridge.Path, token, `{"session":"a","run":"1","name":"f","args":null}`, 200, `{"ok":true,"value":{"id":"","cell":0,"kind":"tool","name":"f","args":null},"next_steps":["go on"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, err := post(t.Context(), t, s, tt.method, tt.path, tt.auth, tt.body)
			require.NoError(t, err)
			require.Equal(t, tt.status, status)
			require.Equal(t, tt.want, body)
		})
	}
	s.Unregister("a")
	status, _, err := post(t.Context(), t, s, "POST", bridge.Path, token, good)
	require.NoError(t, err)
	require.Equal(t, 403, status, "a session that is gone has no right")
}

// TestWhoHangsUpEndsItsCall ends the context of the call, and Close that of all.
func TestWhoHangsUpEndsItsCall(t *testing.T) {
	t.Parallel()
	s := start(t)
	began, ended := make(chan struct{}, 2), make(chan error, 2)
	token := "Bearer " + s.Register("a", func(ctx context.Context, _ messages.HostCall) messages.HostResult {
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return messages.HostResult{}
	})
	body := `{"session":"a","run":"1","name":"f"}`
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _, _ = post(ctx, t, s, "POST", bridge.Path, token, body) })
	<-began
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	wg.Wait()

	wg.Go(func() { _, _, _ = post(context.Background(), t, s, "POST", bridge.Path, token, body) })
	<-began
	c, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	require.NoError(t, s.Close(c))
	require.ErrorIs(t, <-ended, context.Canceled)
	wg.Wait()
}

// TestHalfARequest is answered without the rest of it when it lacks the token, and
// holds up neither a call nor the end.
func TestHalfARequest(t *testing.T) {
	t.Parallel()
	s, err := bridge.Start(t.Context(), "")
	require.NoError(t, err)
	token := s.Register("one", echo)
	var conns []net.Conn
	for _, auth := range []string{"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer " + token + "\r\n"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
		require.NoError(t, err)
		conns = append(conns, c)
		_, err = io.WriteString(c, "POST "+bridge.Path+" HTTP/1.1\r\nHost: localhost\r\n"+auth+"Content-Length: 100\r\n\r\n")
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
	}
	for _, c := range conns[:2] {
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusForbidden, res.StatusCode)
		require.True(t, res.Close)
	}
	status, _, err := post(t.Context(), t, s, http.MethodPost, bridge.Path, "Bearer "+token, `{"session":"one","run":"r","name":"n"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, s.Close(ctx))
	for _, c := range conns {
		_, err := io.Copy(io.Discard, c)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is closed")
		require.NoError(t, c.Close())
	}
}

func TestOverASocketWithAPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h")
	s, err := bridge.Start(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, "unix:"+path, s.URL())
	token := s.Register("s", func(_ context.Context, c messages.HostCall) messages.HostResult {
		return messages.HostResult{Value: c.Args}
	})
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+bridge.Path, strings.NewReader(`{"session":"s","run":"1","name":"n","args":{"a":1}}`))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, errors.Join(err, answer.Body.Close()))
	require.JSONEq(t, `{"ok":true,"value":{"a":1}}`, string(body))
	require.NoError(t, s.Close(t.Context()))
	require.NoFileExists(t, path)
}
