package environment

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDoctorFindsSockets: those of a server that was killed are told, and removed with Fix.
func TestDoctorFindsSockets(t *testing.T) {
	ended := exec.Command("true")
	require.NoError(t, ended.Run())
	s := Settings{Home: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}}
	run := filepath.Join(s.Home, ".coppice", "run")
	require.NoError(t, os.MkdirAll(run, 0o700))
	socket := filepath.Join(run, fmt.Sprintf("handover-%d.sock", ended.Process.Pid))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	of := func(o DoctorOptions) []Finding {
		o.Settings, o.Quick = s, true
		d, err := Doctor(t.Context(), o)
		require.NoError(t, err)
		return slices.DeleteFunc(d.Findings, func(f Finding) bool { return f.Check != checkLeftovers })
	}
	what := "the socket " + socket + " of a coppice serve that was killed"
	require.Contains(t, of(DoctorOptions{}), Finding{Check: checkLeftovers, State: FindingWarning, Detail: what, Mend: "coppice doctor --fix"})
	require.Contains(t, of(DoctorOptions{Fix: true}), Finding{Check: checkLeftovers, State: FindingFixed, Detail: what + ": gone"})
	require.NoFileExists(t, socket)
}
