package httpserver_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/opportunity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyTheLoopbackInterface(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.168.1.1:0", "example.org:80", "[::]:0", "7788", "127.0.0.1.example.org:0", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:no such"} {
		_, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: addr})
		require.ErrorIs(t, err, httpserver.ErrAddress, addr)
	}
	s, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "localhost:0"})
	require.NoError(t, err)
	require.Len(t, s.Token(), 64)
	require.NoError(t, s.Close())
}

func TestWhoGetsIn(t *testing.T) {
	t.Parallel()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { httpserver.JSON(w, http.StatusOK, "hello") })
	s, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0", Token: "sesame"}, httpserver.Mount{Pattern: "GET /hello", Handler: hello})
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL(), "http://"))
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for name, tc := range map[string]struct {
		path, host, origin, site, auth string
		want                           int
	}{
		"who knows the token":         {auth: "Bearer sesame", want: 200},
		"no token":                    {want: 401},
		"a wrong token":               {auth: "Bearer sesam", want: 401},
		"another way":                 {auth: "Basic sesame", want: 401},
		"a name of somebody else":     {auth: "Bearer sesame", host: "example.org", want: 403},
		"a name of this machine":      {auth: "Bearer sesame", host: "localhost:1", want: 200},
		"a page of another origin":    {auth: "Bearer sesame", origin: "http://example.org", want: 403},
		"a page of this server":       {auth: "Bearer sesame", origin: s.URL(), site: "same-origin", want: 200},
		"its address over TLS":        {auth: "Bearer sesame", origin: "https" + strings.TrimPrefix(s.URL(), "http"), want: 403},
		"a page of another site":      {auth: "Bearer sesame", site: "cross-site", want: 403},
		"a page of another port":      {auth: "Bearer sesame", site: "same-site", want: 403},
		"this server by its name":     {auth: "Bearer sesame", origin: "http://localhost:" + port, want: 200},
		"a page of that name":         {auth: "Bearer sesame", host: "127.0.0.1:" + port, origin: "http://localhost:" + port, site: "cross-site", want: 200},
		"this server over IPv6":       {auth: "Bearer sesame", origin: "http://[::1]:" + port, want: 200},
		"all of it by its name":       {auth: "Bearer sesame", host: "localhost:" + port, origin: "http://LOCALHOST:" + port, want: 200},
		"no port at all":              {auth: "Bearer sesame", host: "localhost", origin: "http://127.0.0.1", want: 200},
		"another server of this name": {auth: "Bearer sesame", origin: "http://localhost:1", want: 403},
		"its name, and no port":       {auth: "Bearer sesame", origin: "http://localhost", want: 403},
		"its name over TLS":           {auth: "Bearer sesame", origin: "https://localhost:" + port, want: 403},
		"a name like it":              {auth: "Bearer sesame", origin: "http://localhost.example.org:" + port, want: 403},
		"a user of that name":         {auth: "Bearer sesame", origin: "http://localhost:" + port + "@example.org", want: 403},
		"another user's":              {auth: "Bearer sesame", origin: "http://example.org@localhost:" + port, want: 403},
		"its port elsewhere":          {auth: "Bearer sesame", origin: "http://192.168.1.1:" + port, want: 403},
		"a page of nowhere":           {auth: "Bearer sesame", origin: "null", want: 403},
		"a name that was bent here":   {auth: "Bearer sesame", host: "example.org:" + port, origin: "http://example.org:" + port, site: "same-origin", want: 403},
		"its origin, but bent here":   {auth: "Bearer sesame", host: "example.org:" + port, origin: "http://localhost:" + port, want: 403},
		"this server, and no token":   {origin: "http://localhost:" + port, want: 401},
		"typed by a person":           {auth: "Bearer sesame", site: "none", want: 200},
		"nothing there":               {auth: "Bearer sesame", path: "/none", want: 404},
		"nothing there, and no token": {path: "/none", want: 401},
	} {
		path := "/hello"
		if tc.path != "" {
			path = tc.path
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, http.NoBody)
		require.NoError(t, err)
		req.Host = tc.host
		for key, value := range map[string]string{"Origin": tc.origin, "Sec-Fetch-Site": tc.site, "Authorization": tc.auth} {
			if value != "" {
				req.Header.Set(key, value)
			}
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, tc.want, resp.StatusCode, name)
		require.True(t, tc.want == http.StatusOK || tc.want == http.StatusNotFound || resp.Close, name)
	}
	end()
	require.NoError(t, <-ended)
}

// TestTheEndOfAServer ends requests by their context, and cuts off those that
// do not mind.
func TestTheEndOfAServer(t *testing.T) {
	t.Parallel()
	for _, minds := range []bool{true, false} {
		entered, leave := make(chan struct{}), make(chan struct{})
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			if minds {
				<-r.Context().Done()
				httpserver.JSON(w, http.StatusOK, "over")
			} else {
				<-leave
			}
		})
		s, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0", Token: "t", Grace: 300 * time.Millisecond}, httpserver.Mount{Pattern: "/", Handler: slow})
		require.NoError(t, err)
		ctx, end := context.WithCancel(context.Background())
		served, asked := make(chan error, 1), make(chan error, 1)
		go func() { served <- s.Serve(ctx) }()
		go func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL(), http.NoBody)
			if err != nil {
				asked <- err
				return
			}
			req.Header.Set("Authorization", "Bearer t")
			resp, err := client.Do(req)
			if err == nil {
				err = resp.Body.Close()
			}
			asked <- err
		}()
		<-entered
		end()
		err = <-served
		close(leave)
		if minds {
			require.NoError(t, err)
			require.NoError(t, <-asked)
		} else {
			var spent *opportunity.SpentError
			require.ErrorAs(t, err, &spent)
			require.Error(t, <-asked)
		}
	}
}

// TestEndingComesFirst lets a request say its last word before it is told to go.
func TestEndingComesFirst(t *testing.T) {
	t.Parallel()
	entered, last := make(chan struct{}), make(chan string)
	talk := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		select {
		case text := <-last:
			httpserver.JSON(w, http.StatusOK, text)
		case <-r.Context().Done():
			httpserver.Error(w, http.StatusServiceUnavailable, "cut", "it was cut off", "")
		}
	})
	o := httpserver.Options{Addr: "127.0.0.1:0", Token: "t", Ending: func(context.Context) { last <- "the end" }}
	s, err := httpserver.Listen(t.Context(), o, httpserver.Mount{Pattern: "/", Handler: talk})
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }() // joined below
	go func() {                            // ends the server when the request is there
		<-entered
		end()
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL(), http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer t")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, <-served)
}
