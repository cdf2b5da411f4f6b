package access_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// start makes the part of a tenant.
func (s *server) start(_ context.Context, tenant string) (*access.Part, error) {
	says := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, tenant+" "+httpserver.PassOf(r.Context()).ID)
	})
	stream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		_, _ = io.WriteString(w, "over: "+context.Cause(r.Context()).Error()+"\n")
	})
	upload := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	inner := httpserver.NewRoutes()
	inner.HandleFunc("GET /look", httpserver.Read, says)
	inner.HandleFunc("POST /do", httpserver.Run, says)
	return &access.Part{
		Mounts: []httpserver.Mount{
			{Pattern: "GET /look", Scope: httpserver.Read, Handler: says},
			{Pattern: "POST /do", Scope: httpserver.Run, Handler: says},
			{Pattern: "GET /undeclared", Handler: says},
			{Pattern: "GET /stream", Scope: httpserver.Read, Handler: stream},
			{Pattern: "PUT /upload", Scope: httpserver.Run, Handler: upload},
			{Pattern: "/in/", Handler: http.StripPrefix("/in", inner), Routes: inner, Prefix: "/in"},
		},
		Sessions: func(context.Context) (int, error) { return len(tenant), nil },
		Ending:   func(context.Context) {},
		Close:    func() error { s.closed <- tenant; return nil },
	}, nil
}

// ask returns the status and the text of an answer; more are pairs of headers.
func (s *server) ask(method, path, token string, more ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, http.NoBody)
	require.NoError(s.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(more); i += 2 {
		if r.Header.Set(more[i], more[i+1]); more[i] == "Host" {
			r.Host = more[i+1]
		}
	}
	resp, err := s.client.Do(r)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(text)
}

func TestWhoGetsWhere(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	run, mine := create(t, s.file, "acme", httpserver.Run, time.Hour)
	read, reads := create(t, s.file, "acme", httpserver.Read, time.Hour)
	other, others := create(t, s.file, "beta", httpserver.Run, time.Hour)
	admin, admins := create(t, s.file, "ops", httpserver.Admin, time.Hour)
	for name, tc := range map[string]struct {
		method, path, token string
		more                []string
		status              int
		says                string
	}{
		"its own":                   {"POST", "/do", run, nil, 200, "acme " + mine.ID},
		"another's":                 {"POST", "/do", other, nil, 200, "beta " + others.ID},
		"a look":                    {"GET", "/look", read, nil, 200, "acme " + reads.ID},
		"more than a look":          {"POST", "/do", read, nil, 403, "--scope run"},
		"more than a look, inside":  {"POST", "/in/do", read, nil, 403, `"scope"`},
		"a look inside":             {"GET", "/in/look", read, nil, 200, "acme"},
		"what is not inside":        {"GET", "/in/nothing", admin, nil, 403, `"scope"`},
		"undeclared":                {"GET", "/undeclared", admin, nil, 403, `"scope"`},
		"nothing there":             {"GET", "/nothing", run, nil, 404, "not_found"},
		"no token":                  {"GET", "/look", "", nil, 401, "unauthorized"},
		"a wrong one":               {"GET", "/look", "coppice_x", nil, 401, "unauthorized"},
		"the id of one":             {"GET", "/look", mine.ID, nil, 401, "unauthorized"},
		"the hash of one":           {"GET", "/look", mine.Hash, nil, 401, "unauthorized"},
		"no token, nothing there":   {"GET", "/nothing", "", nil, 401, "unauthorized"},
		"a page without a token":    {"GET", "/", "", nil, 200, ""},
		"alive":                     {"GET", "/healthz", "", nil, 200, "true"},
		"another tenant":            {"GET", "/look", run, []string{access.TenantHeader, "beta"}, 404, "there is no such tenant"},
		"a tenant that is not":      {"GET", "/look", run, []string{access.TenantHeader, "gamma"}, 404, "there is no such tenant"},
		"its own, named":            {"GET", "/look", run, []string{access.TenantHeader, "acme"}, 200, "acme"},
		"an admin elsewhere":        {"POST", "/do", admin, []string{access.TenantHeader, "beta"}, 200, "beta " + admins.ID},
		"an admin nowhere":          {"POST", "/do", admin, []string{access.TenantHeader, "gamma"}, 404, "there is no such tenant"},
		"tenants":                   {"GET", "/api/tenants", admin, nil, 200, `"tenant":"beta"`},
		"tenants, for a tenant":     {"GET", "/api/tenants", run, nil, 403, "--scope admin"},
		"tenants, for no one":       {"GET", "/api/tenants", "", nil, 401, "unauthorized"},
		"the end, for a tenant":     {"POST", "/api/shutdown", run, nil, 403, "--scope admin"},
		"another host":              {"GET", "/look", run, []string{"Host", "example.org"}, 403, "another host"},
		"the name on the paper":     {"GET", "/look", run, []string{"Host", "localhost:1"}, 200, "acme"},
		"a page of elsewhere":       {"GET", "/look", run, []string{"Origin", "https://example.org"}, 403, "other origins"},
		"a page in clear":           {"GET", "/look", run, []string{"Origin", strings.Replace(s.url, "https", "http", 1)}, 403, "other origins"},
		"its own page":              {"GET", "/look", run, []string{"Origin", s.url}, 200, "acme"},
		"a page by another site":    {"GET", "/look", run, []string{"Sec-Fetch-Site", "cross-site"}, 403, "other origins"},
		"a sandbox of no one":       {"GET", "/look", "", []string{"E2b-Sandbox-Id", "x", "X-Access-Token", "y"}, 401, "unauthorized"},
		"a token in another header": {"GET", "/look", "", []string{"X-API-Key", run}, 401, "unauthorized"},
		"upwards":                   {"GET", "/in/%2e%2e/look", run, nil, 400, "goes up"},
	} {
		status, text := s.ask(tc.method, tc.path, tc.token, tc.more...)
		require.Equal(t, tc.status, status, "%s: %s", name, text)
		require.Contains(t, text, tc.says, name)
	}

	data, err := os.ReadFile(s.audit)
	require.NoError(t, err)
	for _, secret := range []string{run, read, other, admin} {
		require.NotContains(t, string(data), secret)
	}
	var elsewhere int
	for line := range strings.Lines(string(data)) {
		var e struct{ Token, Tenant, In, Route string }
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.NotEmpty(t, e.Token+e.Tenant)
		if e.In == "beta" {
			require.Equal(t, "ops", e.Tenant)
			require.Equal(t, admins.ID, e.Token)
			require.Equal(t, "POST /do", e.Route)
			elsewhere++
		}
	}
	require.Equal(t, 1, elsewhere)

	status, _ := s.ask("POST", "/api/shutdown", admin)
	require.Equal(t, http.StatusAccepted, status)
	<-s.asked
}

// TestWhatATokenOpenedEndsWithIt, without anybody's asking.
func TestWhatATokenOpenedEndsWithIt(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	text, made := create(t, s.file, "acme", httpserver.Run, time.Hour)
	stay, _ := create(t, s.file, "acme", httpserver.Run, time.Hour)
	open := func(token, method, path string, body io.Reader) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		return s.client.Do(r)
	}
	stream, err := open(text, "GET", "/stream", http.NoBody)
	require.NoError(t, err)
	lines := bufio.NewReader(stream.Body)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "begun\n", line)
	other, err := open(stay, "GET", "/stream", http.NoBody)
	require.NoError(t, err)
	from, to := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		resp, err := open(text, "PUT", "/upload", from)
		if err == nil {
			err = errors.Join(errors.New("it was answered"), resp.Body.Close())
		}
		_ = from.CloseWithError(io.ErrClosedPipe)
		sent <- err
	}()
	_, err = to.Write([]byte("a part of it"))
	require.NoError(t, err)

	_, err = s.file.Revoke(t.Context(), made.ID)
	require.NoError(t, err)
	line, _ = lines.ReadString('\n')
	require.Contains(t, line, "the token of the request opens nothing any more")
	_, err = lines.ReadString('\n')
	require.Error(t, err)
	require.NoError(t, stream.Body.Close())
	require.Error(t, <-sent)
	status, _ := s.ask("GET", "/look", text)
	require.Equal(t, 401, status)
	status, _ = s.ask("GET", "/look", stay)
	require.Equal(t, 200, status)
	line, err = bufio.NewReader(other.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "begun\n", line)
	require.NoError(t, other.Body.Close())
}

// TestAPartIsStartedOnce, by whom ever asks first, and again when that failed.
func TestAPartIsStartedOnce(t *testing.T) {
	t.Parallel()
	var starts atomic.Int32
	s := serve(t, func(o *access.Options) {
		inner := o.Start
		o.Start = func(ctx context.Context, tenant string) (*access.Part, error) {
			if starts.Add(1) == 1 {
				return nil, errors.New("not the first time: /secret/folder")
			}
			return inner(ctx, tenant)
		}
		o.May = func(tenant string, all []string) error {
			if tenant == "barred" {
				return errors.New("no wall")
			}
			return nil
		}
	})
	text, _ := create(t, s.file, "acme", httpserver.Run, time.Hour)
	barred, _ := create(t, s.file, "barred", httpserver.Run, time.Hour)
	status, why := s.ask("GET", "/look", text)
	require.Equal(t, 503, status)
	require.NotContains(t, why, "secret")
	got := make(chan int, 8)
	for range cap(got) {
		go func() {
			status, _ := s.ask("GET", "/look", text)
			got <- status
		}()
	}
	for range cap(got) {
		require.Equal(t, 200, <-got)
	}
	require.Equal(t, int32(2), starts.Load())
	status, _ = s.ask("GET", "/look", barred)
	require.Equal(t, 503, status)
	require.Equal(t, int32(2), starts.Load())
}

func TestOnlyTLS13(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	config := s.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	_, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
	require.ErrorContains(t, err, "protocol version")
	config.MaxVersion = tls.VersionTLS13
	config.NextProtos = []string{"h2"}
	_, err = (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
	require.Error(t, err, "HTTP/2 is not spoken")
	resp, err := s.client.Get(strings.Replace(s.url, "https", "http", 1) + "/healthz")
	if err == nil {
		require.Equal(t, 400, resp.StatusCode, "in clear")
		require.NoError(t, resp.Body.Close())
	}
}
