package egress

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	hosts, err := Parse([]string{"api.example.com", "*.example.org", "git.example.net:8443", "127.0.0.1:9", "[::1]:80", "10.0.0.7", "bücher.example"})
	require.NoError(t, err)
	for target, want := range map[string]bool{
		"api.example.com:443": true, "api.example.com:80": true, "api.example.com.:443": true, "api.example.com:22": false, "xapi.example.com:443": false, "a.api.example.com:443": false,
		"files.example.org:443": true, "a.b.example.org:443": true, "example.org:443": false, "evilexample.org:443": false,
		"git.example.net:8443": true, "git.example.net:443": false,
		"127.0.0.1:9": true, "127.0.0.1:80": false, "[::ffff:127.0.0.1]:9": true, "[::1]:80": true, "10.0.0.7:443": true, "10.0.0.8:443": false,
		"xn--bcher-kva.example:443": true, "bücher.example:443": true, "api.example.com.evil.example:443": false, "api.example.com%00.evil:443": false, "0x7f000001:9": false,
	} {
		host, port, err := split(target)
		require.NoError(t, err, target)
		got, _ := hosts.allow(host, port)
		require.Equal(t, want, got, target)
	}
	require.Equal(t, "api.example.com, *.example.org, git.example.net:8443, 127.0.0.1:9, [::1]:80, 10.0.0.7, bücher.example", hosts.String())
}

func TestHostsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "*", "*.", "a b", "https://api.example.com", "api.example.com/simple", "api.example.com:0", "api.example.com:65536", "api.example.com:https", "a..b", strings.Repeat("a", 300), "a\x00b", "user@host"} {
		_, err := Parse([]string{text})
		require.ErrorContains(t, err, "write a name like api.example.com", text)
	}
}

// TestNamesOfThisMachine are refused where they are listed: they would never be connected to.
func TestNamesOfThisMachine(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"localhost", "localhost:7788", "LocalHost.", "api.localhost", "*.localhost"} {
		_, err := Parse([]string{text})
		require.ErrorContains(t, err, "list 127.0.0.1 or ::1, with the port", text)
	}
	_, err := Parse([]string{"localhost.example.com", "127.0.0.1:7788", "[::1]:80"})
	require.NoError(t, err)
}

func FuzzHosts(f *testing.F) {
	f.Add("*.a.b:443", "x.a.b", 443)
	f.Add("127.0.0.1", "127.0.0.1", 80)
	f.Add("a.b", "xn--a.b", 1)
	f.Fuzz(func(t *testing.T, listed, asked string, port int) {
		hosts, err := Parse([]string{listed})
		if err != nil {
			return
		}
		if ok, _ := hosts.allow(asked, port); ok && hosts[0].port == 0 && port != portHTTP && port != portHTTPS {
			t.Fatalf("%q lets port %d of %q", listed, port, asked)
		}
	})
}
