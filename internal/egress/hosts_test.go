package egress

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	hosts, err := Parse([]string{"pypi.org", "*.PythonHosted.org", "git.example.org:8443", "127.0.0.1:9", "[::1]:80", "10.0.0.7", "bücher.example"})
	require.NoError(t, err)
	for target, want := range map[string]bool{
		"pypi.org:443": true, "pypi.org:80": true, "PyPI.org.:443": true, "pypi.org:22": false, "xpypi.org:443": false, "a.pypi.org:443": false,
		"files.pythonhosted.org:443": true, "a.b.pythonhosted.org:443": true, "pythonhosted.org:443": false, "evilpythonhosted.org:443": false,
		"git.example.org:8443": true, "git.example.org:443": false,
		"127.0.0.1:9": true, "127.0.0.1:80": false, "[::ffff:127.0.0.1]:9": true, "[::1]:80": true, "10.0.0.7:443": true, "10.0.0.8:443": false,
		"xn--bcher-kva.example:443": true, "bücher.example:443": true, "pypi.org.evil.example:443": false, "pypi.org%00.evil:443": false, "0x7f000001:9": false,
	} {
		host, port, err := split(target)
		require.NoError(t, err, target)
		got, _ := hosts.allow(host, port)
		require.Equal(t, want, got, target)
	}
	require.Equal(t, "pypi.org, *.PythonHosted.org, git.example.org:8443, 127.0.0.1:9, [::1]:80, 10.0.0.7, bücher.example", hosts.String())
}

func TestHostsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "*", "*.", "a b", "https://pypi.org", "pypi.org/simple", "pypi.org:0", "pypi.org:65536", "pypi.org:https", "a..b", strings.Repeat("a", 300), "a\x00b", "user@host"} {
		_, err := Parse([]string{text})
		require.ErrorContains(t, err, "write a name like pypi.org", text)
	}
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
