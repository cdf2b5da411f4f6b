package forkserver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/forkserver"
)

// TestASpawnEndsWithItsContext also when the interpreter does not read its source.
func TestASpawnEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	time.AfterFunc(200*time.Millisecond, func() { cancel(enough) })
	_, err := forkserver.Spawn(ctx, forkserver.Options{Python: path, Env: os.Environ()}, nil, nil)
	require.ErrorIs(t, err, enough)
	_, err = forkserver.Spawn(ctx, forkserver.Options{Python: path, Env: os.Environ()}, nil, nil)
	require.ErrorIs(t, err, enough)
}
