//go:build !linux

package scenario

import "os"

// proportional is known on Linux only.
func proportional(int) int64 { return 0 }

// ownMemory is known on Linux only.
func ownMemory() int64 { return 0 }

// residentNow is known on Linux only.
func residentNow() int64 { return 0 }

// onDisk is how long a file is, in bytes; 0 where there is none.
func onDisk(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
