package runner_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
)

func TestUsualRungRunsNothing(t *testing.T) {
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "bwrap"), []byte("#!/bin/sh\necho >> "+ran+"\n"), 0o700))
	t.Setenv("PATH", bin)
	_, err := runner.Provision(runner.HostOptions{}).Provision(kernel.Site{})
	require.NoError(t, err)
	require.NoFileExists(t, ran, "bubblewrap was tried for sessions that are not to be in it")
	_, err = runner.Provision(runner.HostOptions{}).Provision(kernel.Site{Isolation: kernel.Isolation{Level: kernel.IsolationStrongest}})
	require.NoError(t, err)
	require.FileExists(t, ran, "the strongest rung is found without a look at bubblewrap")
}
