package fetch_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// made is what a program is made of: the files of each package of the root, with the hashes
// of what is in them, and the version of the module that each other package is of.
type made map[string]map[string]string

// sameAsHere wants the program in the stranger's folder to be made of what the root has
// here, and of nothing else.
func sameAsHere(t *testing.T, s stranger) {
	t.Helper()
	const program = "example.com/program"
	theirs := madeOf(t, s.dir, s.env, program)
	require.Contains(t, theirs, program)
	delete(theirs, program)
	ours := madeOf(t, repository(t), os.Environ(), root, root+"/agent")
	require.Greater(t, len(ours), 100, "packages of the root, and what they import")
	require.Equal(t, slices.Sorted(maps.Keys(ours)), slices.Sorted(maps.Keys(theirs)))
	for pkg, files := range ours {
		require.Equal(t, files, theirs[pkg], pkg)
	}
}

// madeOf asks go in a folder for packages and all that they import, but for the standard
// library. Go fails where a package or a file that is to be embedded is missing.
func madeOf(t *testing.T, dir string, env []string, patterns ...string) made {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-json"}, patterns...)...)
	cmd.Dir, cmd.Env = dir, env
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, said.String())
	found := made{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir, ImportPath                                      string
			Standard                                             bool
			Module                                               struct{ Path, Version string }
			GoFiles, CgoFiles, CFiles, HFiles, SFiles, SysoFiles []string
			EmbedFiles                                           []string
		}
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		switch {
		case p.Standard:
		case p.Module.Path != root:
			found[p.ImportPath] = map[string]string{p.Module.Path: p.Module.Version}
		default:
			files := map[string]string{}
			for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.CFiles, p.HFiles, p.SFiles, p.SysoFiles, p.EmbedFiles) {
				data, err := os.ReadFile(filepath.Join(p.Dir, name))
				require.NoError(t, err)
				files[name] = fmt.Sprintf("%x", sha256.Sum256(data))
			}
			found[p.ImportPath] = files
		}
	}
}
