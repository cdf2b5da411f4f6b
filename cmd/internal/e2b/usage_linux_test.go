package e2b

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAChildWithoutACommandLineIsThere, as one is that is just becoming its program; one
// that has ended and was not reaped is not.
func TestAChildWithoutACommandLineIsThere(t *testing.T) {
	t.Parallel()
	cat, err := exec.LookPath("cat")
	require.NoError(t, err)
	c := &exec.Cmd{Path: cat, Args: []string{""}} // of that, its command line is empty
	in, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	defer func() { _ = c.Wait() }()
	defer func() { _ = in.Close() }()
	has := func() bool {
		return strings.Contains(strings.Join(children(os.Getpid()), "; "), fmt.Sprintf("(process %d)", c.Process.Pid))
	}
	require.True(t, has())
	require.NoError(t, c.Process.Kill())
	require.Eventually(t, func() bool { return !has() }, time.Minute, 5*time.Millisecond)
}
