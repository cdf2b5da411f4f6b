package egress

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hello answers, over TLS or without.
func hello(t *testing.T, secure bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "hello %s %q", r.Method, r.Header["Proxy-Authorization"])
	}))
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func at(t *testing.T, s *httptest.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	return u.Host
}

// start starts a proxy to hosts, and a client that uses it as programs do.
func start(t *testing.T, hosts ...string) (*Proxy, *http.Client) {
	t.Helper()
	var list Hosts
	for _, text := range hosts {
		h, err := parse(text)
		if !errors.Is(err, errLocal) { // the name that on every system stands for an address of its own
			require.NoError(t, err)
		}
		list = append(list, h)
	}
	p, err := Start(t.Context(), list)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	proxy := ""
	for _, entry := range p.Env() {
		if value, ok := strings.CutPrefix(entry, "HTTPS_PROXY="); ok {
			proxy = value
		}
	}
	u, err := url.Parse(proxy)
	require.NoError(t, err)
	transport := &http.Transport{Proxy: http.ProxyURL(u), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // the server of the test
	t.Cleanup(transport.CloseIdleConnections)
	return p, &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, address string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	r, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { require.NoError(t, r.Body.Close()) }()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(body)
}

func TestListedHostsAreReached(t *testing.T) {
	t.Parallel()
	plain, secure := hello(t, false), hello(t, true)
	p, client := start(t, at(t, plain), at(t, secure))
	code, body := get(t, client, plain.URL)
	require.Equal(t, 200, code, body)
	require.Equal(t, "hello GET []", body, "the token is the proxy's alone")
	code, body = get(t, client, secure.URL)
	require.Equal(t, 200, code, body)
	require.Equal(t, "hello GET []", body)
	require.Empty(t, p.Refused())
}

func TestOthersAreRefusedAndTold(t *testing.T) {
	t.Parallel()
	plain, secure := hello(t, false), hello(t, true)
	p, client := start(t, "api.example.com", "localhost:1")
	code, body := get(t, client, plain.URL)
	require.Equal(t, 403, code)
	require.Equal(t, at(t, plain)+" may not be reached from here, but api.example.com, localhost:1\n", body)
	for range 2 {
		_, body = get(t, client, secure.URL)
		require.Contains(t, body, at(t, secure)+" may not be reached from here, but api.example.com, localhost:1")
	}
	// A name for an address of this machine.
	code, body = get(t, client, "http://localhost:1/")
	require.Equal(t, 502, code)
	require.Contains(t, body, "which is reached when the address is listed itself")
	told := p.Refused()
	require.Len(t, told, 3)
	require.Equal(t, at(t, plain), told[0].Host)
	require.Equal(t, 2, told[1].Times)
	require.Equal(t, "localhost:1", told[2].Host)
	require.Equal(t, "it is not among the hosts that may be reached", told[0].Why)
	require.Contains(t, told[2].Why, "it stands for an address of this machine")
	require.False(t, told[2].Last.IsZero())
}

func TestWhoHasNoTokenIsRefused(t *testing.T) {
	t.Parallel()
	plain := hello(t, false)
	p, _ := start(t, at(t, plain))
	for _, u := range []*url.Userinfo{nil, url.User(user), url.UserPassword(user, "x"), url.UserPassword("x", p.token)} {
		transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", User: u, Host: fmt.Sprintf("127.0.0.1:%d", p.Port())}), DisableKeepAlives: true}
		code, _ := get(t, &http.Client{Transport: transport}, plain.URL)
		require.Equal(t, 407, code, "%v", u)
		transport.CloseIdleConnections()
	}
}

// talk sends a request as it is written.
func talk(t *testing.T, p *Proxy, text string) (net.Conn, *bufio.Reader, int) {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", p.Port()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	h := http.Header{}
	r := &http.Request{Header: h}
	r.SetBasicAuth(user, p.token)
	_, err = io.WriteString(c, strings.ReplaceAll(text, "TOKEN", "Proxy-Authorization: "+h.Get("Authorization")))
	require.NoError(t, err)
	in := bufio.NewReader(c)
	answer, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	if answer.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, answer.Body)
	}
	_ = answer.Body.Close()
	return c, in, answer.StatusCode
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	p, _ := start(t, "127.0.0.1:1")
	for text, want := range map[string]int{
		"GET / HTTP/1.1\r\nHost: a\r\nTOKEN\r\n\r\n":                             400,
		"GET ftp://a/ HTTP/1.1\r\nHost: a\r\nTOKEN\r\n\r\n":                      400,
		"CONNECT a HTTP/1.1\r\nHost: a\r\nTOKEN\r\n\r\n":                         400,
		"CONNECT a:0 HTTP/1.1\r\nHost: a\r\nTOKEN\r\n\r\n":                       400,
		"CONNECT evil:443 HTTP/1.1\r\nHost: 127.0.0.1:1\r\nTOKEN\r\n\r\n":        403,
		"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\nTOKEN\r\n\r\n":     502,
		"GET http://127.0.0.1:2/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\nTOKEN\r\n\r\n": 403,
	} {
		_, _, code := talk(t, p, text)
		require.Equal(t, want, code, "%q", text)
	}
}

// TestTunnels carry both ways, say when one side is done, and end with the proxy.
func TestTunnels(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	echo := make(chan error, 2)
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, err = io.Copy(c, c)
			_ = c.Close()
			echo <- err
		}
	}()
	list, err := Parse([]string{l.Addr().String()})
	require.NoError(t, err)
	p, err := Start(t.Context(), list)
	require.NoError(t, err)
	connect := "CONNECT " + l.Addr().String() + " HTTP/1.1\r\nHost: x\r\nTOKEN\r\n\r\n"
	c, in, code := talk(t, p, connect+"early")
	require.Equal(t, 200, code)
	_, err = io.WriteString(c, " late")
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	all, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, "early late", string(all))
	require.NoError(t, <-echo)

	_, in, code = talk(t, p, connect)
	require.Equal(t, 200, code)
	require.NoError(t, p.Close())
	_, err = in.ReadByte()
	require.Error(t, err, "it ended")
	t.Logf("the other side: %v", <-echo)
}
