//go:build !linux

package scenario

import "time"

// use is what a process has of what is limited.
type use struct{ files, threads int }

// useOf is known on Linux only.
func useOf(int) (use, bool) { return use{}, false }

// cpuTime is known on Linux only.
func cpuTime(int) time.Duration { return 0 }

// ownCPU is known on Linux only.
func ownCPU() time.Duration { return 0 }
