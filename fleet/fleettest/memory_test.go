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

// TestGuard: what a guard makes of a store is a directory.
func TestGuard(t *testing.T) {
	t.Parallel()
	fleettest.Run(t, func(*testing.T) func(*testing.T) fleet.Directory {
		store := fleettest.NewMemory()
		return func(t *testing.T) fleet.Directory {
			d := fleet.Guard(store.Open())
			t.Cleanup(func() { require.NoError(t, d.Close()) })
			return d
		}
	})
}

// TestOutage: a directory that is away for a while, and comes back.
func TestOutage(t *testing.T) {
	t.Parallel()
	store := fleettest.NewMemory()
	first, second := fleettest.NewLink(store), fleettest.NewLink(store)
	fleettest.Outage(t, first, second, func() {
		first.Cut()
		second.Cut()
	}, func() {
		first.Mend()
		second.Mend()
	})
	fleettest.Unbroken(t, second, func() { second.Cut(); second.Mend() })
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
}
