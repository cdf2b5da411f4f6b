//go:build unix

// Package release_test runs what a release is installed with, on releases that a test
// makes: right ones, and those that are not what they say.
package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const version = "1.2.3"

// scripts is the folder of what is tested.
var scripts = filepath.Join("..", "..", "release")

// stem is the name of the archive for a system, without its extension.
func stem(system string) string { return "coppice_" + version + "_" + system }

// here is the system of the test, as archives are named.
var here = runtime.GOOS + "_" + runtime.GOARCH

// write writes a file into a folder.
func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
}

// published makes the folder of a release whose archive for this system holds program.
func published(t *testing.T, program string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	require.NoError(t, files.WriteHeader(&tar.Header{Name: stem(here) + "/coppice", Mode: 0o755, Size: int64(len(program))}))
	_, err := files.Write([]byte(program))
	require.NoError(t, err)
	require.NoError(t, files.Close())
	require.NoError(t, zipped.Close())
	write(t, dir, stem(here)+".tar.gz", archive.String(), 0o600)
	write(t, dir, "SHA256SUMS", fmt.Sprintf("%x  %s.tar.gz\n%s  %s.tar.gz\n", sha256.Sum256(archive.Bytes()), stem(here), strings.Repeat("0", 64), stem("plan9_arm")), 0o600)
	return dir
}

const good = "#!/bin/sh\necho coppice " + version + "\n"

// install runs install.sh, with the folder bin before all others in PATH.
func install(t *testing.T, bin string, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{filepath.Join(scripts, "install.sh")}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func TestInstalls(t *testing.T) {
	t.Parallel()
	from, dir := published(t, good), filepath.Join(t.TempDir(), "a b", "bin")
	for _, args := range [][]string{{}, {"--version", version}, {"--version", "v" + version}} {
		out, err := install(t, t.TempDir(), append(args, "--from", from, "--dir", dir)...)
		require.NoError(t, err, out)
		require.Contains(t, out, "coppice "+version+" is "+dir+"/coppice\nput "+dir+" into your PATH")
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "coppice")).Output()
	require.NoError(t, err)
	require.Equal(t, "coppice "+version+"\n", string(out))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "the program is the one thing that is left there")
}

// From an address, everything comes by one program that refuses what is not https.
func TestInstallsFromAnAddress(t *testing.T) {
	t.Parallel()
	from, bin, dir := published(t, good), t.TempDir(), t.TempDir()
	write(t, bin, "curl", `#!/bin/sh
echo "$*" >>`+bin+`/asked
while [ $# -gt 2 ]; do [ "$1" = -o ] && out=$2; shift; done
cp `+from+`/"${2##*/}" "$out"
`, 0o700)
	out, err := install(t, bin, "--dir", dir)
	require.NoError(t, err, out)
	asked, err := os.ReadFile(filepath.Join(bin, "asked"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(asked)), "\n")
	require.Len(t, lines, 2)
	for i, name := range []string{"SHA256SUMS", stem(here) + ".tar.gz"} {
		require.True(t, strings.HasPrefix(lines[i], "--proto =https --tlsv1.2 "), lines[i])
		require.True(t, strings.HasSuffix(lines[i], " https://github.com/coppice-run/coppice/releases/latest/download/"+name), lines[i])
	}
	out, err = install(t, bin, "--dir", dir, "--version", version)
	require.NoError(t, err, out)
	asked, err = os.ReadFile(filepath.Join(bin, "asked"))
	require.NoError(t, err)
	require.Contains(t, string(asked), "/releases/download/v"+version+"/SHA256SUMS")
}

// Nothing is installed, and the reason is said, when a release is not right.
func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, from, bin string)
		args   []string
		says   string
	}{
		"another archive": {
			change: func(t *testing.T, from, _ string) {
				t.Helper()
				other, err := os.ReadFile(filepath.Join(published(t, good+"#"), stem(here)+".tar.gz"))
				require.NoError(t, err)
				write(t, from, stem(here)+".tar.gz", string(other), 0o600)
			},
			says: "its checksum is ",
		},
		"cut archive": {
			change: func(t *testing.T, from, _ string) {
				t.Helper()
				require.NoError(t, os.Truncate(filepath.Join(from, stem(here)+".tar.gz"), 20))
			},
			says: "is not what the release says",
		},
		"no sum": {
			change: func(t *testing.T, from, _ string) { t.Helper(); write(t, from, "SHA256SUMS", "", 0o600) },
			says:   "the release has no archive for",
		},
		"two archives": {
			change: func(t *testing.T, from, _ string) {
				t.Helper()
				sum := strings.Repeat("1", 64)
				write(t, from, "SHA256SUMS", sum+"  "+stem(here)+".tar.gz\n"+sum+"  coppice_2_"+here+".tar.gz\n", 0o600)
			},
			says: "the release has several archives",
		},
		"a name with a path": {
			change: func(t *testing.T, from, _ string) {
				t.Helper()
				write(t, from, "SHA256SUMS", strings.Repeat("1", 64)+"  coppice_/../../x_"+here+".tar.gz\n", 0o600)
			},
			says: "the release has no archive for",
		},
		"another version": {args: []string{"--version", "9.9.9"}, says: "the release holds " + stem(here) + ".tar.gz, not version 9.9.9"},
		"another processor": {
			change: func(t *testing.T, _, bin string) {
				t.Helper()
				write(t, bin, "uname", "#!/bin/sh\n[ \"$1\" = -m ] && echo mips || echo Linux\n", 0o700)
			},
			says: "no archive for a processor mips",
		},
		"no encryption": {args: []string{"--from", "http://example.com"}, says: "must be an https address"},
		"an option":     {args: []string{"--nope"}, says: "--nope is not an option"},
		"no value":      {args: []string{"--dir"}, says: "--dir needs a value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, bin, dir := published(t, good), t.TempDir(), filepath.Join(t.TempDir(), "bin")
			if c.change != nil {
				c.change(t, from, bin)
			}
			out, err := install(t, bin, append([]string{"--from", from, "--dir", dir}, c.args...)...)
			require.Error(t, err, out)
			require.Contains(t, out, "install.sh: ")
			require.Contains(t, out, c.says)
			require.NoFileExists(t, filepath.Join(dir, "coppice"))
		})
	}
}

// A program that does not run here takes the place of none that does.
func TestInstallKeepsWhatRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "coppice", "the one before", 0o700)
	out, err := install(t, t.TempDir(), "--from", published(t, "#!/bin/sh\necho wrong libc\nexit 1\n"), "--dir", dir)
	require.Error(t, err)
	require.Contains(t, out, "does not run on this machine: wrong libc")
	kept, err := os.ReadFile(filepath.Join(dir, "coppice"))
	require.NoError(t, err)
	require.Equal(t, "the one before", string(kept))
}

// The formula has the sum of each archive, and is not written without one.
func TestFormula(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sums := ""
	for i, system := range []string{"darwin_arm64", "darwin_amd64", "linux_arm64", "linux_amd64"} {
		sums += strings.Repeat(fmt.Sprint(i+1), 64) + "  " + stem(system) + ".tar.gz\n"
	}
	formula := func(sums string) (string, error) {
		write(t, dir, "SHA256SUMS", sums, 0o600)
		out, err := exec.CommandContext(t.Context(), "sh", filepath.Join(scripts, "formula.sh"), filepath.Join(dir, "SHA256SUMS"), version).CombinedOutput()
		return string(out), err
	}
	text, err := formula(sums)
	require.NoError(t, err, text)
	for i, system := range []string{"darwin_arm64", "darwin_amd64", "linux_arm64", "linux_amd64"} {
		require.Contains(t, text, stem(system)+".tar.gz\"\n      sha256 \""+strings.Repeat(fmt.Sprint(i+1), 64)+"\"\n")
	}
	require.Contains(t, text, "version \""+version+"\"\n")
	text, err = formula(strings.Replace(sums, "linux_arm64", "linux_mips", 1))
	require.Error(t, err)
	require.Contains(t, text, "has no archive of "+version+" for linux_arm64")
}
