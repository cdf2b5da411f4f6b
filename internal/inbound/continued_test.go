package inbound_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/inbound"
)

// TestABodyIsAskedForOnce: the read of the body says that it is wanted, and what the other
// server has said of that comes after it.
func TestABodyIsAskedForOnce(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w, r = inbound.Relayed(w, r)
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusContinue)
		w.WriteHeader(http.StatusEarlyHints) // all others go through
		w.WriteHeader(http.StatusAccepted)
	}))
	defer s.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "PUT / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody")
	require.NoError(t, err)
	said, err := io.ReadAll(c)
	require.NoError(t, err)
	var heads []string
	for line := range strings.Lines(string(said)) {
		if strings.HasPrefix(line, "HTTP/1.1 ") {
			heads = append(heads, strings.Fields(line)[1])
		}
	}
	require.Equal(t, []string{"100", "103", "202"}, heads)
}

// TestAnUpgradeIsRelayed: both servers speak another protocol on the connection then.
func TestAnUpgradeIsRelayed(t *testing.T) {
	t.Parallel()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.Copy(c, buffered)
		_ = c.Close()
	}))
	defer echo.Close()
	to, err := url.Parse(echo.URL)
	require.NoError(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	relay := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { relay.ServeHTTP(inbound.Relayed(w, r)) }))
	defer s.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	_, err = io.WriteString(c, "hello\n")
	require.NoError(t, err)
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
}
