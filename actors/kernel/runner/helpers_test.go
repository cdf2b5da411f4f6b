//go:build linux

package runner_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/messages"
)

func prelude(code string) runner.Options { return runner.Options{Prelude: code} }

// kill ends a process at once.
func kill(tb testing.TB, pid int) {
	tb.Helper()
	require.NoError(tb, syscall.Kill(pid, syscall.SIGKILL))
}

// quote returns a Python literal for plain text.
func quote(s string) string { return strconv.Quote(s) }

// hostCells are what the sessions of a host that is killed are doing.
var hostCells = []string{
	"",
	"print('go')\nwhile True: pass",
	"print('go')\nimport time\ntime.sleep(1000)",
	"import asyncio\nprint('go')\nawait asyncio.sleep(1000)",
	"import ctypes\nprint('go')\nctypes.PyDLL(None).usleep(1000000000)", // holds the interpreter's lock
	"import os, signal\nprint('go')\nos.kill(os.getpid(), signal.SIGSTOP)",
	"import subprocess\nprint('go')\nsubprocess.run(['sleep', '1000'])",
	"import signal\nfor s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\nprint('go')\nwhile True: pass",
	"import os\nif os.fork() == 0:\n    import time\n    time.sleep(1000)\nprint('go')\nos.wait()",
	"while True: print('go' * 1000)",
}

// play is what the test binary does as a host: it starts a session for each of
// hostCells, says so, and waits to be killed.
func play(role string) int {
	if role == "crowd" {
		return playCrowd()
	}
	f := startServer(runner.ServerOptions{Python: python(), NoFork: role == "host without fork"})
	b := runner.New(runner.Options{Server: f.server})
	going := make(chan struct{}, 1000)
	for _, code := range hostCells {
		i, err := b.Start(context.Background(), kernel.StartOptions{})
		if err != nil {
			_, _ = fmt.Fprintln(os.Stdout, err)
			return 1
		}
		if code == "" {
			// A copy that waits ends with the host, too.
			if err := i.(kernel.Copier).Copy(context.Background(), []string{"kept"}); err != nil {
				_, _ = fmt.Fprintln(os.Stdout, err)
				return 1
			}
			continue
		}
		go func() { // until the host is killed
			_, _ = i.Execute(context.Background(), kernel.CellRequest{Code: code}, func(context.Context, messages.Event) error {
				select {
				case going <- struct{}{}:
				default:
				}
				select {} // the host takes one event of each and no more
			})
		}()
		<-going
	}
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	<-c
	return 0
}
