package external_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/test/external"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The proxy passes requests on, and cuts what asks for a kernel's channels.
func TestProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/base/kernels/1/channels" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "open\n")
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}
			return
		}
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	defer server.Close()
	p := external.NewProxy(t, server.URL+"/base")

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+"/x", nil)
		require.NoError(t, err)
		resp, err := client.Do(r)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "/base/x", string(body))
	}
	get()
	p.Cut()
	require.Zero(t, p.Cuts())

	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.URL[len("http://"):len(p.URL)-len("/base")])
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET /base/kernels/1/channels?session_id=a HTTP/1.1\r\nHost: a\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "open\n", line)
	p.Cut()
	require.Zero(t, p.Cuts(), "nobody has used it")
	stop := p.CutEvery(time.Millisecond)
	_, err = io.WriteString(conn, "a frame")
	require.NoError(t, err)
	_, err = in.ReadByte()
	require.Error(t, err)
	stop()
	require.Equal(t, 1, p.Cuts())
	get()
}
