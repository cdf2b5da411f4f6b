// Package fetch_test gets the modules of this repository as another program gets them:
// from a module proxy, which a test makes of the tree.
package fetch_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/testpython"
)

// The other modules require one version of coppice, that of their next release, and nothing
// in their go.mod counts only here.
func TestAdaptersRequireOneVersion(t *testing.T) {
	t.Parallel()
	_, version := required(t, adapters[0])
	found := 0
	for _, below := range []string{"agent", "fleet", "store", "cmd"} {
		files, err := filepath.Glob(filepath.Join(repository(t), below, "*", "go.mod"))
		require.NoError(t, err)
		found += len(files)
	}
	require.Equal(t, len(modules), found, "each module is tested here")
	for _, a := range modules {
		f, v := required(t, a)
		require.Equal(t, path.Join(root, a), f.Module.Mod.Path)
		require.Equal(t, version, v, a)
		require.NotEqual(t, "v0.0.0", v, a)
		require.Empty(t, f.Replace, "%s: a replacement does not count for who requires the module", a)
		require.Empty(t, f.Exclude, a)
	}
}

// Each module can be downloaded, and the root has no file of an adapter.
func TestDownload(t *testing.T) {
	t.Parallel()
	_, version := required(t, adapters[0])
	s := newStranger(t, fileURL(served(t, version)))
	s.dir = t.TempDir()
	for _, m := range append([]string{root}, under(modules)...) {
		s.run(t, "go", "mod", "download", "-json", m+"@"+version)
	}
	cache := s.run(t, "go", "env", "GOMODCACHE")
	got := filepath.Join(strings.TrimSpace(cache), filepath.FromSlash(root)+"@"+version)
	require.FileExists(t, filepath.Join(got, "agent", "doc.go"))
	for _, m := range modules {
		require.NoDirExists(t, filepath.Join(got, filepath.FromSlash(m)))
		require.FileExists(t, filepath.Join(strings.TrimSpace(cache), filepath.FromSlash(root), filepath.FromSlash(m)+"@"+version, "doc.go"))
	}
}

// under returns the import paths of folders.
func under(folders []string) []string {
	var list []string
	for _, f := range folders {
		list = append(list, path.Join(root, f))
	}
	return list
}

// program uses a package of a module; it needs no Python, since no session is started.
const program = `package main

import (
	"context"
	"fmt"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	IMPORT
)

func main() {
	host, err := coppice.Start(context.Background(), coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Env: []string{"PI_PYTHON_SKIP_CHECK=1"}})
	if err != nil {
		panic(err)
	}
	defer host.Shutdown(context.Background())
	list, err := agent.Tools(host, agent.Options{})
	if err != nil {
		panic(err)
	}
	tools, err := TOOLS
	fmt.Println(len(tools), err)
}
`

// TestPrograms gets a module with go get, outside of the repository, for a program that uses
// it. What the program is made of is what is compiled here: the same packages, of the root
// with the same bytes, of others in the same versions. With COPPICE_TEST_FULL=1 it is built
// and run, and so it is with each of the adapters, whose frameworks are gigabytes for a
// machine that has none of them.
func TestPrograms(t *testing.T) {
	t.Parallel()
	full := os.Getenv("COPPICE_TEST_FULL") != ""
	_, version := required(t, adapters[0])
	proxy := fileURL(served(t, version))
	// What this machine has downloaded before need not come from afar.
	known := fileURL(filepath.Join(setting(t, "GOMODCACHE"), "cache", "download"))
	s := newStranger(t, strings.Join([]string{proxy, known, setting(t, "GOPROXY")}, ","))
	s.env = append(s.env, "COPPICE_HOME="+t.TempDir())
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	build := func(get, folder string, put ...string) {
		s.dir = t.TempDir()
		s.run(t, "go", "mod", "init", "example.com/program")
		write("go.sum", read(t, "go.sum")+read(t, path.Join(folder, "go.sum"))) // so that they are compared with these
		s.run(t, "go", "get", get+"@"+version)
		write("main.go", strings.NewReplacer(put...).Replace(program))
		if !full {
			sameAsHere(t, s)
			return
		}
		binary := filepath.Join(s.dir, "program.exe")
		s.run(t, "go", "build", "-o", binary, ".")
		require.Equal(t, "1 <nil>\n", s.run(t, binary), get)
	}
	build(root, ".", "IMPORT", "", "TOOLS", "list, err")
	if !full {
		return
	}
	for i, m := range under(adapters) {
		a := path.Base(m)
		build(m, adapters[i], "IMPORT", `"`+m+`"`, "TOOLS", a+".Tools(list, "+a+".Options{})")
	}
}

// TestInstall gets the command as its users do, with go install, and runs it. It knows the
// version that was asked for. It is compiled for that, so this is of the full run.
func TestInstall(t *testing.T) {
	t.Parallel()
	if os.Getenv("COPPICE_TEST_FULL") == "" {
		return
	}
	_, version := required(t, adapters[0])
	known := fileURL(filepath.Join(setting(t, "GOMODCACHE"), "cache", "download"))
	s := newStranger(t, strings.Join([]string{fileURL(served(t, version)), known, setting(t, "GOPROXY")}, ","))
	s.dir = t.TempDir()
	s.env = append(s.env, "GOBIN="+s.dir, "COPPICE_HOME="+t.TempDir())
	s.run(t, "go", "install", root+"/cmd/coppice@"+version)
	said := s.run(t, filepath.Join(s.dir, "coppice"), "--version")
	require.True(t, strings.HasPrefix(said, "coppice "+strings.TrimPrefix(version, "v")+" (go"), said)
	said = s.run(t, filepath.Join(s.dir, "coppice"), "run", "-c", "6 * 7", "--backend", "runner", "--python", testpython.Path(t))
	require.Contains(t, said, "42")
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository(t), filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(data)
}
