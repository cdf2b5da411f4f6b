package bash_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/starve"
)

// tidiesUp is a command that waits for one which takes its time to end, when it is asked to.
// It is ready to be asked before the other one says that it is. That one looks now and then
// whether it was: a signal that comes just before its wait begins does not end the wait.
const tidiesUp = `
trap : TERM
(trap 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo ended; exit' TERM; echo $BASHPID; while :; do sleep 0.2 & wait $!; done) &
wait $!; wait $!; exit 7
`

// An interrupted command keeps its grace while what it has started, and waits for, has no
// processor to end with.
func TestAnInterruptedCommandWithoutAProcessor(t *testing.T) {
	i := start(t)
	var p printed
	done := make(chan kernel.CellReply, 1)
	go func() {
		reply, err := i.Execute(context.Background(), kernel.CellRequest{Code: tidiesUp}, p.emit)
		if err != nil {
			reply.Error = &messages.ErrorDetails{Message: err.Error()}
		}
		done <- reply
	}()
	require.Eventually(t, func() bool { return strings.HasSuffix(p.text(), "\n") }, time.Minute, time.Millisecond)
	pid, err := strconv.Atoi(strings.TrimSpace(p.text()))
	require.NoError(t, err)
	giveBack := starve.Deprive(t, pid)
	require.NoError(t, i.Interrupt(t.Context()))
	select {
	case reply := <-done:
		require.Fail(t, "it was not waited for", "exit code %d: %s", *reply.ExitCode, p.text())
	case <-time.After(2500 * time.Millisecond): // the grace, twice and more
	}
	giveBack()
	reply := <-done
	require.Nil(t, reply.Error)
	require.True(t, reply.Interrupted)
	require.Equal(t, 7, *reply.ExitCode)
	require.Contains(t, p.text(), "ended")
}
