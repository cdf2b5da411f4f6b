package render_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/render"
)

func TestName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                 "",
		"a b~1":            "a b~1",
		"jürgen 日本":        "jürgen 日本",
		"evil\u202ename":   `"evil\u202ename"`,
		"a\nb\x1b[31m\x7f": `"a\nb\x1b[31m\x7f"`,
		"\xff":             `"\xff"`,
	} {
		require.Equal(t, want, render.Name(name))
	}
}
