//go:build !linux

package machine

// Look knows nothing on this system but where temporary files go.
func Look(tempDir string) Limits { return Limits{TempDir: tempDir} }
