package gobuild_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/gobuild"
)

func TestFlagsAreThoseOfThisTest(t *testing.T) {
	t.Parallel()
	if raced {
		require.Equal(t, []string{"-race"}, gobuild.Flags())
		return
	}
	require.Empty(t, gobuild.Flags())
}
