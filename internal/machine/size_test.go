package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/machine"
)

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[uint64]string{0: "0 MiB", 5<<20 + 1: "5 MiB", 10<<30 - 1: "10239 MiB", 10 << 30: "10 GiB", 64 << 30: "64 GiB"} {
		require.Equal(t, want, machine.Size(n))
	}
}
