package main

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli"
)

// TestEngines: what no directory can be at is refused before anything is asked, with what is
// meant.
func TestEngines(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	for name, tc := range map[string]struct {
		at   string
		o    cli.DirectoryOptions
		want string
	}{
		"another kind":            {"consul://127.0.0.1:8500", cli.DirectoryOptions{}, "kubernetes://NAMESPACE"},
		"two kinds":               {"etcd://127.0.0.1:2379,nats://127.0.0.1:4222", cli.DirectoryOptions{}, "of one kind"},
		"no port":                 {"etcd://127.0.0.1", cli.DirectoryOptions{}, "one is like etcd://127.0.0.1:2379"},
		"no port of NATS":         {"nats://127.0.0.1", cli.DirectoryOptions{}, "one is like nats://127.0.0.1:4222"},
		"what NATS does not know": {"nats://127.0.0.1:4222?ca=x", cli.DirectoryOptions{}, `"ca" is none`},
		"embedded":                {"etcd://127.0.0.1:2379", cli.DirectoryOptions{Embed: 1}, "--fleet-embed"},
		"vouched for":             {"kubernetes://", cli.DirectoryOptions{Synced: true}, "--fleet-synced"},
		"not encrypted":           {"etcd://127.0.0.1:2379?ca=x", cli.DirectoryOptions{}, "etcds://"},
		"what it does not know":   {"etcds://127.0.0.1:2379?password=x", cli.DirectoryOptions{}, `"password" is none`},
		"not with the first":      {"etcds://127.0.0.1:2379,etcds://127.0.0.1:2380?ca=x", cli.DirectoryOptions{}, "with the first server"},
		"half a pair":             {"etcds://127.0.0.1:2379?cert=x", cli.DirectoryOptions{}, "go together"},
		"no such authority":       {"etcds://127.0.0.1:2379?ca=" + none, cli.DirectoryOptions{}, "read ca of --fleet"},
		"no such pair":            {"etcds://127.0.0.1:2379?key=" + none + "&cert=" + none, cli.DirectoryOptions{}, "read cert and key of --fleet"},
		"a server":                {"kubernetes://10.0.0.1:6443", cli.DirectoryOptions{}, "?kubeconfig=FILE"},
		"no such configuration":   {"kubernetes://?kubeconfig=" + none, cli.DirectoryOptions{}, "find the cluster of kubernetes://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.Logger = slog.New(slog.DiscardHandler)
			for at := range strings.SplitSeq(tc.at, ",") {
				u, err := url.Parse(at)
				require.NoError(t, err)
				tc.o.URLs = append(tc.o.URLs, u)
			}
			_, _, err := open(t.Context(), tc.o)
			require.ErrorContains(t, err, tc.want)
			if !strings.HasPrefix(tc.want, "read ") && !strings.HasPrefix(tc.want, "find ") {
				require.ErrorIs(t, err, cli.ErrFleetUsage)
			}
		})
	}
}

// TestSandboxURLs: what no sandboxes can be at is refused before anything is asked.
func TestSandboxURLs(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"docker://agents?template=t":                      "kubernetes://NAMESPACE?template=NAME",
		"kubernetes://agents":                             "names the SandboxTemplate",
		"kubernetes://agents?template=t&ttl=1":            `"ttl" is none`,
		"kubernetes://agents?template=t&lifetime=1":       "lifetime=1",
		"kubernetes://agents?template=t&lifetime=1ms":     "lifetime=1ms",
		"kubernetes://agents?template=t&port=70000":       "port=70000",
		"kubernetes://agents:6443?template=t":             "?kubeconfig=FILE",
		"kubernetes://agents?template=t&kubeconfig=/none": "find the cluster of kubernetes://",
	} {
		u, err := url.Parse(at)
		require.NoError(t, err)
		_, err = openSandboxes(t.Context(), cli.SandboxOptions{URL: u, Logger: slog.New(slog.DiscardHandler)})
		require.ErrorContains(t, err, want, at)
		if !strings.HasPrefix(want, "find ") {
			require.ErrorIs(t, err, cli.ErrFleetUsage)
		}
	}
}
