package version

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// semver is the expression that semver.org gives.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$`)

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ linked, module, want string }{
		{"", "v0.3.1", "0.3.1"},
		{"", "v1.0.0-rc.1", "1.0.0-rc.1"},
		{"", "v0.3.1+dirty", "0.3.1+dirty"},
		{"", "v0.3.2-0.20261122125926-dc2957d2ab34", "0.3.2-0.20261122125926-dc2957d2ab34"},
		{"", "v0.0.0-20261122125926-dc2957d2ab34", Next + "-dev.20261122125926.gdc2957d2ab34"},
		{"", "v0.0.0-20261122125926-012345678901+dirty", Next + "-dev.20261122125926.g012345678901+dirty"},
		{"", "(devel)", Next + "-dev"},
		{"", "", Next + "-dev"},
		{"0.4.0", "v0.3.1", "0.4.0"},
	} {
		i := of(c.linked, &debug.BuildInfo{Main: debug.Module{Version: c.module}})
		require.Equal(t, c.want, i.Version, "%+v", c)
		require.Regexp(t, semver, i.Version)
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	i := of("", &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs", Value: "git"},
		{Key: "vcs.revision", Value: "dc2957d"},
		{Key: "vcs.time", Value: "2026-11-22T12:59:26Z"},
		{Key: "vcs.modified", Value: "true"},
	}})
	require.Equal(t, Info{
		Version: Next + "-dev", Commit: "dc2957d", Date: "2026-11-22T12:59:26Z", Modified: true,
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}, i)
	require.Equal(t, Next+"-dev ("+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")", i.String())
	require.Regexp(t, semver, Read().Version)
}

// The adapters are released with the root, and require the version that it becomes.
func TestAdaptersRequireNext(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.Join("..", "..", "..", "agent", "*", "go.mod"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, name := range found {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Contains(t, string(text), "github.com/coppice-run/coppice v"+Next+"\n", name)
	}
}

// The clients for other languages have the version that the tree becomes, everywhere.
func TestClientsHaveNext(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"python/pyproject.toml":                  "version = \"" + Next + "\"\n",
		"python/src/coppice/__init__.py":         "__version__ = \"" + Next + "\"\n",
		"jupyter/pyproject.toml":                 "version = \"" + Next + "\"\n",
		"jupyter/src/coppice_kernel/__init__.py": "__version__ = \"" + Next + "\"\n",
		"typescript/package.json":                "  \"version\": \"" + Next + "\",\n",
		"typescript/package-lock.json":           "\n  \"version\": \"" + Next + "\",\n",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "clients", filepath.FromSlash(name)))
		require.NoError(t, err)
		require.Contains(t, string(text), line, name)
	}
}
