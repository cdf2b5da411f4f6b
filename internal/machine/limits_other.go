//go:build !linux

package machine

// Look knows nothing on this system but where temporary files go.
func Look(tempDir string) Limits { return Limits{TempDir: tempDir} }

// Memory returns 0: this system does not tell.
func Memory() (all, available uint64) { return 0, 0 }
