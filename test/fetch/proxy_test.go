package fetch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// root is the module path of the repository.
const root = "github.com/coppice-run/coppice"

// adapters are the modules below package agent, by their folders; modules are those of the
// fleet and the store, too, and the fleet's program.
var (
	adapters = []string{"agent/adk", "agent/eino", "agent/genkit", "agent/trpc"}
	modules  = append(slices.Clone(adapters), "fleet/natskv", "fleet/etcdkv", "fleet/kubelease", "fleet/agentsandbox", "store/blobstore", "cmd/coppice-fleet")
)

// repository is the folder of the repository.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return dir
}

// required is a module of the repository as its go.mod describes it, and the version of
// coppice that it requires.
func required(t *testing.T, folder string) (*modfile.File, string) {
	t.Helper()
	name := filepath.Join(repository(t), filepath.FromSlash(folder), "go.mod")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	f, err := modfile.Parse(name, data, nil)
	require.NoError(t, err)
	for _, r := range f.Require {
		if r.Mod.Path == root {
			return f, r.Mod.Version
		}
	}
	require.Fail(t, "no version of coppice", "%s requires none", name)
	return nil, ""
}

// source is a file of a module.
type source struct{ name, file string }

func (s source) Path() string { return s.name }

func (s source) Lstat() (os.FileInfo, error) { return os.Lstat(s.file) }

func (s source) Open() (io.ReadCloser, error) { return os.Open(s.file) }

// sources are the files below a folder of the repository that belong to it or are to:
// what git tracks or would.
func sources(t *testing.T, folder string) []zip.File {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = filepath.Join(repository(t), filepath.FromSlash(folder))
	out, err := cmd.Output()
	require.NoError(t, err)
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		s := source{name, filepath.Join(cmd.Dir, filepath.FromSlash(name))}
		if info, err := s.Lstat(); err == nil && info.Mode().IsRegular() { // one that was deleted is still listed
			files = append(files, s)
		}
	}
	require.NotEmpty(t, files)
	return files
}

// one is the proxy that all tests use: it takes seconds to pack the tree. TestMain removes it.
var one struct {
	sync.Mutex
	dir string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(one.dir); err != nil {
		fmt.Fprintln(os.Stderr, "the proxy:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// served is the folder of that proxy, which its first user makes.
func served(t *testing.T, version string) (proxy string) {
	t.Helper()
	one.Lock()
	defer one.Unlock()
	if one.dir == "" {
		dir, err := os.MkdirTemp("", "coppice-proxy-") //nolint:usetesting // it stays for the other tests
		require.NoError(t, err)
		one.dir = dir
		serve(t, one.dir, version)
	}
	return one.dir
}

// serve makes a folder a module proxy of the tree as it is: the root and the other
// modules, all of one version, with the bytes that a proxy makes of tags.
func serve(t *testing.T, proxy, version string) {
	t.Helper()
	publish(t, proxy, module.Version{Path: root, Version: version}, ".")
	for _, m := range modules {
		publish(t, proxy, module.Version{Path: path.Join(root, m), Version: version}, m)
	}
}

func publish(t *testing.T, proxy string, m module.Version, folder string) {
	t.Helper()
	dir := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	put := func(suffix string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, m.Version+suffix), data, 0o600))
	}
	info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.NoError(t, err)
	put(".info", info)
	mod, err := os.ReadFile(filepath.Join(repository(t), filepath.FromSlash(folder), "go.mod"))
	require.NoError(t, err)
	put(".mod", mod)
	var archive bytes.Buffer
	require.NoError(t, zip.Create(&archive, m, sources(t, folder)))
	put(".zip", archive.Bytes())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "list"), []byte(m.Version+"\n"), 0o600))
}

// fileURL is a folder as GOPROXY names it.
func fileURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(dir), "/")}).String()
}

// setting is a value of go env.
func setting(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// stranger runs the go command as a machine would that has never seen this tree: with a
// module cache of its own, and modules from the proxies alone.
type stranger struct {
	dir string
	env []string
}

func newStranger(t *testing.T, proxies string) stranger {
	t.Helper()
	return stranger{env: append(
		os.Environ(), "GOPROXY="+proxies, "GOMODCACHE="+t.TempDir(), "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOWORK=off",
		// The settings of this machine that count are given here; those about private
		// modules would send some past the proxies.
		"GOENV=off", "GOPRIVATE=", "GONOPROXY=", "GOSUMDB="+setting(t, "GOSUMDB"), "GONOSUMDB="+strings.Trim(root+","+setting(t, "GONOSUMDB"), ","),
	)}
}

func (s stranger) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s:\n%s", name, strings.Join(args, " "), out)
	return string(out)
}
