package jupyter_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/test/fakegateway"
)

func TestNewClientChecksTheURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"ftp://127.0.0.1":                "scheme",
		"http://":                        "no host",
		"http://user:hunter2@127.0.0.1/": "credentials",
		"http://127.0.0.1/?token=x":      "query",
		"http://127.0.0.1/%zz":           "malformed",
		"":                               "scheme",
	} {
		_, err := jupyter.NewClient(jupyter.Options{URL: url})
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
	c, err := jupyter.NewClient(jupyter.Options{URL: "https://gw.example:8443/base/path//"})
	require.NoError(t, err)
	require.Equal(t, "https://gw.example:8443/base/path", c.URL())
}

func TestRESTRoundTrip(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{})
	ctx := within(t)
	require.NoError(t, c.Healthy(ctx))
	specs, err := c.Kernelspecs(ctx)
	require.NoError(t, err)
	want := jupyter.Kernelspecs{Default: "python3", Specs: map[string]jupyter.Kernelspec{"python3": {
		Name: "python3", DisplayName: "Python 3", Language: "python", InterruptMode: "signal",
		Argv: []string{"python", "-m", "ipykernel_launcher"},
	}}}
	require.Empty(t, cmp.Diff(want, specs))

	m, err := c.Create(ctx, jupyter.CreateRequest{Name: "python3"})
	require.NoError(t, err)
	require.Equal(t, map[string]any{}, s.Creates()[0]["env"], "env is sent, even empty")
	got, err := c.Get(ctx, m.ID)
	require.NoError(t, err)
	require.Equal(t, m, got)
	require.NoError(t, c.InterruptKernel(ctx, m.ID))
	require.NoError(t, c.Delete(ctx, m.ID))
	require.NoError(t, c.Delete(ctx, m.ID), "gone is gone")
	_, err = c.Get(ctx, m.ID)
	require.ErrorIs(t, err, jupyter.ErrNotFound)
}

func TestStatusErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		code int
		body string
		want error
		text string
	}{
		{401, "", jupyter.ErrUnauthorized, "GET /api/kernelspecs: status 401: requires authentication. Set PI_PYTHON_GATEWAY_TOKEN."},
		{403, "", jupyter.ErrUnauthorized, "GET /api/kernelspecs: status 403: requires authentication. Set PI_PYTHON_GATEWAY_TOKEN."},
		{403, "Resource Limit", jupyter.ErrKernelLimit, "GET /api/kernelspecs: status 403: the server's kernel limit is reached"},
		{404, "", jupyter.ErrNotFound, "GET /api/kernelspecs: status 404: not found"},
		{500, "", nil, "GET /api/kernelspecs: status 500: the server failed"},
		{302, "", nil, "GET /api/kernelspecs: status 302: the server redirects elsewhere"},
		{429, "", nil, "GET /api/kernelspecs: status 429: the server is asked too often"},
		{418, "", nil, "GET /api/kernelspecs: status 418: the server refused"},
	} {
		_, c := fake(t, fakegateway.Options{Faults: fakegateway.Faults{Status: map[string]int{"kernelspecs": tc.code}, Body: tc.body}})
		err := c.Healthy(within(t))
		var status *jupyter.StatusError
		require.ErrorAs(t, err, &status)
		require.Equal(t, tc.code, status.Code)
		require.Equal(t, tc.text, err.Error())
		if tc.want != nil {
			require.ErrorIs(t, err, tc.want)
		}
		require.NotContains(t, err.Error(), "secret", "nothing of the server's text")
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	// A port that was just given back refuses connections.
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	c, err := jupyter.NewClient(jupyter.Options{URL: "http://" + l.Addr().String(), Token: "hunter2"})
	require.NoError(t, err)
	defer c.Close()
	err = c.Healthy(within(t))
	var un *jupyter.UnreachableError
	require.ErrorAs(t, err, &un)
	require.False(t, un.Timeout)
	require.False(t, un.Sent)
	require.Contains(t, err.Error(), "is not reachable: ")
	require.NotContains(t, err.Error(), "hunter2")
	_, err = c.Start(within(t), jupyter.StartRequest{})
	require.ErrorAs(t, err, &un)
}

func TestTimeoutAndCancellationAreToldApart(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{Faults: fakegateway.Faults{Hang: map[string]bool{"kernelspecs": true}}},
		func(o *jupyter.Options) { o.RequestTimeout = 50 * time.Millisecond })
	err := c.Healthy(within(t))
	var un *jupyter.UnreachableError
	require.ErrorAs(t, err, &un)
	require.True(t, un.Timeout)
	require.Equal(t, "GET /api/kernelspecs: the server is not reachable (timeout)", err.Error())

	left := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	c2, err := jupyter.NewClient(jupyter.Options{URL: s.URL(), Token: s.Token()})
	require.NoError(t, err)
	defer c2.Close()
	go cancel(left)
	err = c2.Healthy(ctx)
	require.ErrorIs(t, err, left)
	require.NotErrorAs(t, err, &un)
}

func TestNotAJupyterServer(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &http.Server{
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>hello</html>"))
		}),
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	defer wg.Wait()
	defer func() { _ = srv.Close() }()
	c, err := jupyter.NewClient(jupyter.Options{URL: "http://" + l.Addr().String()})
	require.NoError(t, err)
	defer c.Close()
	require.ErrorContains(t, c.Healthy(within(t)), "not one of a Jupyter server")
	_, err = c.Create(within(t), jupyter.CreateRequest{})
	require.Error(t, err)
	_, err = c.Get(within(t), "x")
	require.ErrorContains(t, err, "not one of a Jupyter server")
}

// The trace has every request and message, and nothing that is secret.
func TestTrace(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []jupyter.TraceRecord
	k, _ := fakeKernel(t, fakegateway.Options{}, func(o *jupyter.Options) {
		o.Trace = func(r jupyter.TraceRecord) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, r)
		}
	})
	run(t, k, "out topsecret")
	mu.Lock()
	defer mu.Unlock()
	types := map[string]bool{}
	for _, r := range seen {
		types[string(r.Direction)+" "+r.Method+r.Type] = true
		for _, text := range []string{r.Path, r.Type, r.Channel, r.ID, r.Parent} {
			require.NotContains(t, text, "topsecret")
			require.NotContains(t, text, "fake-token")
			require.NotContains(t, text, "?", text)
		}
	}
	for _, want := range []string{"requested POST", "requested GET", "sent execute_request", "received execute_reply", "received stream"} {
		require.True(t, types[want], want)
	}
}
