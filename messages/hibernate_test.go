package messages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

func TestRestoredString(t *testing.T) {
	t.Parallel()
	memory := func(m messages.Memory) messages.Restored { return messages.Restored{Memory: m} }
	for text, r := range map[string]messages.Restored{
		"it had no variables.": {},
		"kept are n.":          memory(messages.Memory{Kept: []string{"n"}}),
		"no variable is as it was; lost: s (socket: it ends).":       memory(messages.Memory{Lost: []messages.LostName{{Name: "s", Type: "socket", Reason: "it ends"}}}),
		"no variable is as it was; changed: c (its cache is empty).": memory(messages.Memory{Changed: []messages.ChangedName{{Name: "c", Change: "its cache is empty"}}}),
	} {
		require.Equal(t, "The session was restored from disk: "+text, r.String())
	}
}
