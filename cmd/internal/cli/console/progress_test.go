package console

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestProgress tells nothing of what takes under a second; then a line for each
// stage, or one line that is repainted and removed.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _, stderr := testConsole(t, "")
		p := c.StartProgress("one", false)
		time.Sleep(900 * time.Millisecond)
		p.Done()
		p.Done()
		require.Empty(t, stderr.String())

		p = c.StartProgress("one", false)
		time.Sleep(1500 * time.Millisecond)
		p.Stage("two", "1 of 2")
		p.Stage("two", "2 of 2")
		p.Stage("", "")
		time.Sleep(time.Second)
		p.Done()
		require.Equal(t, "coppice: one\ncoppice: two\n", stderr.String())
	})
	synctest.Test(t, func(t *testing.T) {
		c, _, stderr := testConsole(t, "")
		c.Err.Terminal, c.Err.Width = true, 30
		p := c.StartProgress("one", true)
		time.Sleep(1500 * time.Millisecond)
		p.Stage("one", "3 of 4")
		time.Sleep(500 * time.Millisecond)
		p.Done()
		text := stderr.String()
		require.Contains(t, text, " one 3 of 4 (1.")
		require.Contains(t, text, " one (1.2 s)\x1b[K\r")
		require.True(t, strings.HasSuffix(text, "\r\x1b[K"), "the line is removed")
		require.NotContains(t, text, "\n")
	})
	synctest.Test(t, func(t *testing.T) {
		c, _, stderr := testConsole(t, "")
		p := c.StartProgress("one", true)
		p.Stage("two", "")
		time.Sleep(2 * time.Second)
		p.Done()
		require.Empty(t, stderr.String(), "scripts are not told")
	})
}
