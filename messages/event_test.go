package messages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]int{"": 0, "None": 0, "0": 0, "3": 3, "256": 0, "-1": 255, "no": 1, "99999999999999999999": 1} {
		require.Equal(t, want, (&messages.ErrorDetails{Name: "SystemExit", Message: message}).ExitStatus(), message)
		require.Equal(t, 1, (&messages.ErrorDetails{Name: "ValueError", Message: message}).ExitStatus(), message)
	}
	require.Equal(t, 1, (*messages.ErrorDetails)(nil).ExitStatus())
}
