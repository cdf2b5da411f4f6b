package loopback_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/loopback"
)

func TestHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.255.0.9": true, "::1": true, "[::1]": true,
		"::ffff:127.0.0.1": true, "[::ffff:127.0.0.1]": true, "0:0:0:0:0:0:0:1": true,

		"": false, "0.0.0.0": false, "::": false, "192.168.1.1": false, "128.0.0.1": false, "::ffff:10.0.0.1": false,
		"example.org": false, "localhost.example.org": false, "127.0.0.1.example.org": false, "localhost.": false, "a.localhost": false,
		"127.1": false, "2130706433": false, "0x7f.0.0.1": false, "127.0.0.01": false, "::1%lo": false, "fe80::1%lo": false,
		"[::1": false, "::1]": false, "[[::1]]": false, "[127.0.0.1]": false, "[localhost]": false, "127.0.0.1:80": false, "\t127.0.0.1": false,
	} {
		require.Equal(t, want, loopback.Host(host), "%q", host)
	}
}

func TestHostPort(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "localhost:80": true, "127.0.0.1:0": true, "[::1]:80": true, "[::1]": true, "::1": true,
		"": false, ":80": false, "example.org:80": false, "[::]:80": false, "0.0.0.0:80": false, "::1:80:": false, "localhost:80:80": false,
		"127.0.0.1@example.org": false, "example.org@127.0.0.1:80": false,
	} {
		require.Equal(t, want, loopback.HostPort(host), "%q", host)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"http://localhost:8888/x": true, "https://127.0.0.1": true, "http://[::1]:8888": true, "http://LOCALHOST": true,
		"http://example.org": false, "http://127.0.0.1@example.org/": false, "http://localhost.example.org": false, "http://[::1%25lo]/": false, "/x": false,
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, loopback.URL(u), text)
	}
}

func TestAddr(t *testing.T) {
	t.Parallel()
	for _, ip := range []string{"127.0.0.1", "::1"} {
		require.True(t, loopback.Addr(&net.TCPAddr{IP: net.ParseIP(ip)}), ip)
	}
	for _, a := range []net.Addr{nil, &net.TCPAddr{}, &net.TCPAddr{IP: net.IPv4zero}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, &net.UnixAddr{Name: "127.0.0.1", Net: "unix"}} {
		require.False(t, loopback.Addr(a), "%v", a)
	}
}
