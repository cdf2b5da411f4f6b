package process_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
)

// What a child wrote before it ended is read, however late this process comes to it, and
// though somebody else holds the pipe.
func TestOutputIsReadLate(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"alone":          "echo first; read go; echo last",
		"held by others": "echo first; read go; setsid sleep 600 & echo $! >&3; echo last",
	} {
		for _, owned := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, owned %v", name, owned), func(t *testing.T) {
				t.Parallel()
				in, tell, err := os.Pipe()
				require.NoError(t, err)
				told, pid, err := os.Pipe() // the number of the one that holds it
				require.NoError(t, err)
				reads, goOn := make(chan struct{}), make(chan struct{})
				var once sync.Once
				out := process.NewRing(process.RingOptions{Tee: func([]byte) { // this process has no time
					once.Do(func() { close(reads); <-goOn })
				}})
				o := process.Options{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdin: in, Stdout: out, Stderr: out, ExtraFiles: []*os.File{pid}}
				if owned {
					o.Owner = owner(t)
				}
				p, err := process.Start(o)
				require.NoError(t, err)
				require.NoError(t, in.Close())
				require.NoError(t, pid.Close())
				<-reads
				_, err = tell.WriteString("go\n")
				require.NoError(t, err)
				require.NoError(t, tell.Close())
				require.NoError(t, process.Await(t.Context(), p.Identity()))
				late := time.NewTimer(time.Second) // longer than anybody is waited for who writes on
				defer late.Stop()
				select {
				case <-p.Done():
					require.Fail(t, "its output was not read")
				case <-late.C:
				}
				close(goOn)
				ended(t, p)
				require.NoError(t, p.Err())
				require.Equal(t, "first\nlast\n", out.String())
				require.NoError(t, told.SetReadDeadline(time.Now().Add(patience)))
				var holder int
				if _, err := fmt.Fscan(told, &holder); err != io.EOF { //nolint:errorlint // it is that itself
					require.NoError(t, err)
					if id, err := process.Identify(holder); err == nil { // it may have ended with the group
						require.Empty(t, process.KillAll(t.Context(), []process.Identity{id}))
					}
				}
				require.NoError(t, told.Close())
			})
		}
	}
}

// Somebody who writes on into the pipe of a child that has ended is not read for ever.
func TestOutputOfOthersHasAnEnd(t *testing.T) {
	t.Parallel()
	out := process.NewRing(process.RingOptions{})
	told, pid, err := os.Pipe()
	require.NoError(t, err)
	p, err := process.Start(process.Options{
		Path: "/bin/sh", Args: []string{"-c", "(setsid sh -c 'echo $$ >&3; exec yes 3>&-') & while :; do sleep 1; done"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: out, ExtraFiles: []*os.File{pid},
	})
	require.NoError(t, err)
	require.NoError(t, pid.Close())
	var holder int
	_, err = fmt.Fscan(told, &holder)
	require.NoError(t, err)
	require.NoError(t, told.Close())
	id, err := process.Identify(holder)
	require.NoError(t, err)
	t.Cleanup(func() { require.Empty(t, process.KillAll(context.Background(), []process.Identity{id})) })
	require.NoError(t, p.Signal(os.Kill))
	ended(t, p)
}
