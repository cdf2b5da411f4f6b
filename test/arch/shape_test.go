package arch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/arch"
)

// TestShape measures the form of the repository, prints it beside what it was, and
// keeps what was reached.
func TestShape(t *testing.T) {
	t.Parallel()
	tree, root := repository(t), rootOf(t)
	shape, err := arch.Measure(tree, root)
	require.NoError(t, err)
	t.Logf("%-45s %10s %10s", "", "before", "now")
	for _, row := range shape.Table() {
		t.Logf("%-45s %10s %10s", row.What, row.Before, row.After)
	}
	for _, f := range shape.Branchy {
		t.Log(f)
	}
	for _, v := range arch.CheckShape(shape) {
		t.Error(v)
	}
}
