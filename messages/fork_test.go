package messages_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

// TestForkRefused: a checkpoint that is gone is what it is about, not the session.
func TestForkRefused(t *testing.T) {
	t.Parallel()
	require.EqualError(t, &messages.ForkRefused{Reason: messages.ForkUnknown, Problem: "the checkpoint does not exist any more"}, "the checkpoint does not exist any more")
	require.EqualError(t, &messages.ForkRefused{Reason: messages.ForkBusy, Problem: "a call runs"}, "the session cannot be copied: a call runs")
}
