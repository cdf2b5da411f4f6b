//go:build !linux

package scenario

// proportional is known on Linux only.
func proportional(int) int64 { return 0 }

// ownMemory is known on Linux only.
func ownMemory() int64 { return 0 }

// residentNow is known on Linux only.
func residentNow() int64 { return 0 }
