package cli

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/reference"
	"github.com/coppice-run/coppice/cmd/internal/version"
)

var update = flag.Bool("update", false, "write docs/reference")

// told are the packages whose options and errors users meet.
var told = []string{".", "agent", "client", "environment", "messages", "actors/launcher", "actors/kernel", "workspace", "workspace/files", "workspace/procs", "hibernate", "store", "fleet"}

// descriptions are those of all metrics of a server.
func descriptions(m *metrics) []string {
	descs := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(descs)
	close(descs)
	var list []string
	for d := range descs {
		list = append(list, d.String())
	}
	return list
}

// TestReferenceIsCurrent holds docs/reference against the sources it is made from.
func TestReferenceIsCurrent(t *testing.T) {
	top := filepath.Join("..", "..", "..")
	root := (&app{Console: console.New(strings.NewReader(""), io.Discard, io.Discard, nil)}).rootCommand()
	m := newMetrics(version.Info{})
	m.hibernated(func(context.Context) int { return 0 })
	sources := os.DirFS(top)
	options, err := reference.Options(sources, told)
	require.NoError(t, err)
	failures, err := reference.Errors(sources, told)
	require.NoError(t, err)
	metrics, err := reference.Metrics(descriptions(m))
	require.NoError(t, err)
	openapi, err := os.ReadFile(filepath.Join("..", "httpapi", "openapi.json"))
	require.NoError(t, err)
	api, err := reference.API(openapi)
	require.NoError(t, err)
	pages := map[string][]byte{
		"commands.md": reference.Commands(root), "environment.md": reference.Topics(root), "options.md": options,
		"errors.md": failures, "metrics.md": metrics, "http.md": api,
		"README.md": reference.Index([][3]string{
			{"commands.md", "Commands", "every command and its flags"},
			{"environment.md", "Environment", "environment variables, exit codes, and the files that are kept"},
			{"http.md", "HTTP API", "every route of a server, with its parameters and answers"},
			{"metrics.md", "Metrics", "what Prometheus is shown"},
			{"options.md", "Options", "what a program that embeds Coppice can set"},
			{"errors.md", "Errors", "what a program can decide on"},
		}),
	}
	dir := filepath.Join(top, "docs", "reference")
	there, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.MkdirAll(dir, 0o755)) //nolint:gosec // documents are for everyone
		for _, name := range there {
			require.NoError(t, os.Remove(name))
		}
		for name, text := range pages {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644)) //nolint:gosec // as above
		}
		return
	}
	for _, name := range there {
		require.Contains(t, pages, filepath.Base(name), "nothing makes this page: run make docs-reference")
	}
	for name, text := range pages {
		kept, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err, "run make docs-reference")
		if !bytes.Equal(text, kept) {
			t.Errorf("docs/reference/%s is not what the sources say; run make docs-reference", name)
		}
	}
}
