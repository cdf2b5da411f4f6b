package sharedgateway_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/sharedgateway"
)

// TestUnfinished: what a killed host left of a file that it wrote is found once it is
// old, and is not taken for the file.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sessions"), 0o700))
	var made []string
	for _, path := range []string{filepath.Join(dir, "gateway.json"), filepath.Join(dir, "sessions", "a.json")} {
		killed := errors.New("killed")
		require.ErrorIs(t, file.Write(path, nil, file.WriteOptions{Before: func() error {
			names, err := filepath.Glob(filepath.Join(filepath.Dir(path), file.Unfinished))
			require.NoError(t, err)
			made = append(made, names...)
			return killed
		}}), killed)
	}
	require.Len(t, made, 2)
	for _, young := range []bool{true, false} {
		for _, path := range made {
			require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
			if !young {
				old := time.Now().Add(-time.Hour)
				require.NoError(t, os.Chtimes(path, old, old))
			}
		}
		left, err := sharedgateway.Leftovers(dir)
		require.NoError(t, err)
		var told []string
		for _, l := range left {
			told = append(told, strings.TrimPrefix(l.What, "the unfinished file "))
		}
		if young {
			require.Empty(t, told)
			continue
		}
		require.ElementsMatch(t, made, told)
	}
}
