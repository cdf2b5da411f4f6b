package kernel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

func TestEachCellHasItsRuntime(t *testing.T) {
	inTree(t, kernel.Options{CellRuntime: 10 * time.Second}, func(t *testing.T, tr *tree) {
		// Together they take longer than one of them may.
		r := tr.run("sleep 7s", "sleep 7s", "count")
		require.Equal(t, ok, r.Outcome)
		require.Nil(t, r.Exceeded)

		begin := time.Now()
		r = tr.run("count", "hang", "count")
		require.Equal(t, 10*time.Second, time.Since(begin))
		require.Equal(t, []messages.Outcome{ok, timeout, notStarted}, outcomes(r))
		require.Equal(t, messages.StateKept, r.State)
		require.Equal(t, &messages.ResourceLimitExceeded{Limit: messages.LimitRuntime}, r.Exceeded)

		// One that will not stop costs the kernel, as after a timeout.
		r = tr.run("swallow")
		require.Equal(t, timeout, r.Outcome)
		require.Equal(t, messages.StateLost, r.State)
		require.Equal(t, messages.LimitRuntime, r.Exceeded.Limit)
		require.Nil(t, tr.run("count").Exceeded)
	})
}

func TestAnInterpreterThatCannotBeCopiedSaysSo(t *testing.T) {
	inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
		tr.run("count")
		_, err := supervisor.Ask[bool](t.Context(), tr.ref(), messages.Fork{Names: []string{"a"}})
		var refused *messages.ForkRefused
		require.ErrorAs(t, err, &refused)
		require.Equal(t, messages.ForkUnsupported, refused.Reason)
		require.Equal(t, "2", tr.run("count").Cells[0].Output)
	})
}
