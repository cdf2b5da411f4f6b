package fleettest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	fleettest.Run(t, func(*testing.T) func(*testing.T) fleet.Directory {
		store := fleettest.NewMemory()
		return func(t *testing.T) fleet.Directory {
			d := store.Open()
			t.Cleanup(func() { require.NoError(t, d.Close()) })
			return d
		}
	})
}

// TestLink: a link that does nothing to what passes is a directory.
func TestLink(t *testing.T) {
	t.Parallel()
	fleettest.Run(t, func(*testing.T) func(*testing.T) fleet.Directory {
		store := fleettest.NewMemory()
		return func(t *testing.T) fleet.Directory {
			d := fleettest.NewLink(store)
			t.Cleanup(func() { require.NoError(t, d.Close()) })
			return d
		}
	})
}
