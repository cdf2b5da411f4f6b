package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConsole is a console that writes to buffers, with an environment of its own.
func testConsole(t *testing.T, stdin string) (c *Console, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return New(strings.NewReader(stdin), stdout, stderr, []string{"HOME=" + t.TempDir()}), stdout, stderr
}

// TestTimeout reads numbers of seconds.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 0, "1": time.Second, "600": 600 * time.Second, "1.5": 1500 * time.Millisecond, "6e1": time.Minute, "5s": 5 * time.Second, "10m": 10 * time.Minute} {
		got, err := ParseTimeout(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"0", "0.99", "600.1", "inf", "-inf", "nan", "one", " 5", "11m", "5x", "1e300", "0x10p"} {
		_, err := ParseTimeout(text)
		require.ErrorContains(t, err, text)
	}
}

// TestOutcomeCodes holds the contract with scripts.
func TestOutcomeCodes(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[messages.Outcome]int{
		messages.OutcomeOK: 0, messages.OutcomeError: 1, messages.OutcomeTimeout: 124, messages.OutcomeCancelled: 130,
		messages.OutcomeLost: 70, messages.OutcomeNotStarted: 70, "unheard-of": 70,
	} {
		require.Equal(t, want, CodeOf(outcome), outcome)
	}
}

// TestCodeThatEndsItself: sys.exit(0) is an end as any other, and any other number is none.
func TestCodeThatEndsItself(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]error{"": nil, "0": nil, "None": nil, "3": &Exit{Code: 1}, "no": &Exit{Code: 1}} {
		r := messages.Result{Outcome: messages.OutcomeError, Cells: []messages.CellResult{{}, {Error: &messages.ErrorDetails{Name: "SystemExit", Message: message}}, {}}}
		require.Equal(t, want, EndedBy(r), message)
		r.Cells[1].Error.Name = "ValueError"
		require.Equal(t, &Exit{Code: 1}, EndedBy(r))
		r.Cells[1].Error.Name, r.Exceeded = "SystemExit", &messages.ResourceLimitExceeded{}
		require.Equal(t, &Exit{Code: 1}, EndedBy(r), "a limit has ended it")
	}
	require.NoError(t, EndedBy(messages.Result{Outcome: messages.OutcomeOK}))
	require.Equal(t, &Exit{Code: 70}, EndedBy(messages.Result{Outcome: messages.OutcomeLost}))
}

// TestStopped: whichever of the call and the host ends first, what a signal stopped was
// cancelled; what failed by itself keeps its code.
func TestStopped(t *testing.T) {
	t.Parallel()
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(errTerminated)
	lost := &Exit{Code: Lost, Err: coppice.ErrClosed}
	for name, tc := range map[string]struct {
		ctx  context.Context //nolint:containedctx // a row of a table
		err  error
		want int
	}{
		"the host was first":          {stopped, lost, Cancelled},
		"before there was a kernel":   {stopped, Ended(messages.OutcomeNotStarted), Cancelled},
		"the call was first":          {stopped, Ended(messages.OutcomeCancelled), Cancelled},
		"while a file was read":       {stopped, UsageError{fmt.Errorf("read a.py: %w", context.Canceled)}, Cancelled},
		"while something was awaited": {stopped, Failure(fmt.Errorf("wait: %w", errTerminated)), Cancelled},
		"the code raised before":      {stopped, Ended(messages.OutcomeError), Raised},
		"out of time":                 {stopped, Ended(messages.OutcomeTimeout), Timeout},
		"nothing stopped it":          {t.Context(), lost, Lost},
	} {
		exit, is := errors.AsType[*Exit](Stopped(tc.ctx, tc.err))
		require.True(t, is, name)
		require.Equal(t, tc.want, exit.Code, name)
	}
	require.NoError(t, Stopped(stopped, nil))
}

// TestReaderGone swallows what is written after the reader has left, and says
// so once.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	require.NoError(t, r.Close())
	told := 0
	o := &Output{W: w, OnBroken: func() { told++ }}
	for range 3 {
		n, err := o.Write([]byte("text"))
		require.NoError(t, err)
		require.Equal(t, 4, n)
	}
	o.Print("more")
	require.Equal(t, 1, told)
	full := &Output{W: failing{}}
	_, err := full.Write([]byte("x"))
	require.NoError(t, err, "the command goes on")
	require.ErrorIs(t, full.Failure(), io.ErrShortWrite, "its end tells")
	require.NoError(t, o.Failure())
}

// TestStageOf says what a change in the tree means to somebody who waits.
func TestStageOf(t *testing.T) {
	t.Parallel()
	for event, want := range map[messages.Lifecycle]string{
		messages.ChildChanged{Kind: "server", Key: "kernel-gateway", To: messages.ChildStarting}: "starting the Kernel Gateway",
		messages.ChildChanged{Kind: "server", Key: "fork-server", To: messages.ChildStarting}:    "starting Python",
		messages.ChildChanged{Kind: "kernel", To: messages.ChildStarting}:                        "starting a kernel",
		messages.ChildChanged{Kind: "kernel", To: messages.ChildIdle}:                            "",
		messages.ChildChanged{Kind: "sink", To: messages.ChildStarting}:                          "",
		messages.Dropped{}: "",
	} {
		require.Equal(t, want, StageOf(event))
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
