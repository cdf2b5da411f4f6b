package toolspec

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSystems is about what differs between systems, tested on any of them.
func TestSystems(t *testing.T) {
	for _, tc := range []struct {
		goos, name string
		passes     bool
	}{
		{"linux", "PATH", true},
		{"linux", "Path", false},
		{"linux", "TMPDIR", true},
		{"linux", "AWS_SECRET_ACCESS_KEY", false},
		{"linux", "PYTHONHOME", false},
		{"windows", "Path", true},
		{"windows", "SystemRoot", true}, // without it a socket cannot be opened
		{"windows", "SYSTEMDRIVE", true},
		{"windows", "UserProfile", true},
		{"windows", "LocalAppData", true},
		{"windows", "temp", true},
		{"windows", "Aws_Secret_Access_Key", false},
		{"darwin", "HOME", true},
		{"darwin", "DYLD_INSERT_LIBRARIES", false},
	} {
		require.Equal(t, tc.passes, passes(tc.goos, tc.name), "%s %s", tc.goos, tc.name)
	}
	require.Equal(t, filepath.Join("tools", "x", ".venv", "Scripts", "python.exe"), pythonPath("windows", filepath.Join("tools", "x")))
	require.Equal(t, filepath.Join("tools", "x", ".venv", "bin", "python"), pythonPath("darwin", filepath.Join("tools", "x")))
}
