//go:build linux

package jupyter_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
)

// What a cell and the formatter of its value print comes before its result: the
// numbers that order the output are given away when a message is sent. Text may come
// in pieces.
func TestResultComesAfterOutputBeforeIt(t *testing.T) {
	i := startKernel(t, backend(t), kernel.StartOptions{Key: messages.SessionKey{Session: "a", Cwd: t.TempDir()}})
	for name, code := range map[string]string{
		"cell":      "print('before')\n6*7",
		"formatter": "class V:\n    def __repr__(self):\n        print('before')\n        return '42'\nV()",
	} {
		for range 5 {
			rec := &recorder{}
			reply, err := i.Execute(t.Context(), kernel.CellRequest{Exec: "x", Code: code}, rec.emit)
			require.NoError(t, err)
			require.True(t, reply.OK)
			require.Equal(t, "before\n", rec.text(messages.StdoutStream))
			var kinds []string
			for _, e := range rec.events {
				switch e.(type) {
				case messages.Stream, messages.ExecuteResult:
					kinds = append(kinds, fmt.Sprintf("%T", e))
				}
			}
			require.Equal(t, []string{"messages.Stream", "messages.ExecuteResult"}, slices.Compact(kinds), name)
		}
	}
}
