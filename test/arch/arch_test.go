package arch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/arch"
)

// rootOf returns the folder of the repository.
func rootOf(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(root, "go.mod"))
	require.NoError(t, err, "the root of the repository")
	return root
}

// repository loads the tree that this test belongs to.
func repository(t *testing.T) *arch.Tree {
	t.Helper()
	tree, err := arch.Load(rootOf(t))
	require.NoError(t, err)
	require.NotEmpty(t, tree.Go())
	return tree
}

// TestRepository judges the repository.
func TestRepository(t *testing.T) {
	t.Parallel()
	tree := repository(t)
	for _, rule := range arch.Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			broken := rule.Check(tree)
			for _, v := range broken {
				t.Error(v)
			}
			if len(broken) > 0 {
				t.Logf("the rule: %s", rule.Why)
			}
		})
	}
}

// TestLoad reads a small repository from disk: other modules and what tools
// made stay out, testdata is text.
func TestLoad(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, src := range map[string]string{
		"go.mod":               "module m\n",
		"a/a.go":               "package a\n",
		"a/testdata/broken.go": "this is not Go\n",
		"tools/go.mod":         "module tools\n",
		"tools/tools.go":       "package tools\n",
		".cache/x/x.go":        "package x\n",
		"README.md":            "# m\n",
		"a/picture.png":        "binary\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(src), 0o600))
	}
	tree, err := arch.Load(root)
	require.NoError(t, err)
	var paths, parsed []string
	for _, f := range tree.Files {
		paths = append(paths, f.Path)
	}
	for _, f := range tree.Go() {
		parsed = append(parsed, f.Path)
	}
	require.Equal(t, []string{"README.md", "a/a.go", "a/testdata/broken.go"}, paths)
	require.Equal(t, []string{"a/a.go"}, parsed)
	require.NotNil(t, tree.File("README.md"))
	require.Nil(t, tree.File("a/b.go"))

	require.NoError(t, os.WriteFile(filepath.Join(root, "a", "b.go"), []byte("package"), 0o600))
	_, err = arch.Load(root)
	require.ErrorContains(t, err, "a/b.go")
}
