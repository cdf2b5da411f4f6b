//go:build unix

package console

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAProgramThatIsNoPython is refused before a server is started, without the code by which it
// was asked, which such programs like to quote.
func TestAProgramThatIsNoPython(t *testing.T) {
	ls, err := exec.LookPath("ls")
	require.NoError(t, err)
	env := []string{"COPPICE_HOME=" + t.TempDir()}
	err = (&Console{Env: env}).CheckPlace(t.Context(), ls, "")
	require.ErrorAs(t, err, new(UsageError))
	require.ErrorContains(t, err, "--python: the Python \""+ls+"\" cannot be used: it does not run: exited with code 2, saying ")
	require.ErrorContains(t, err, "coppice env shows which Python there is")
	require.NotContains(t, err.Error(), "sys.stdout")
	require.NotContains(t, err.Error(), "Must run")
	require.NoError(t, (&Console{Env: append(env, "COPPICE_PYTHON_SKIP_CHECK=1")}).CheckPlace(t.Context(), ls, ""))
}
