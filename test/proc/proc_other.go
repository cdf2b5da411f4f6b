//go:build !linux

package proc

// WithEnv fails: a test that saw no process here would prove nothing.
func WithEnv(string, string) []Process { panic("proc: processes can be looked at on Linux only") }

// Below panics.
func Below(int) []Process { panic("proc: processes can be looked at on Linux only") }

// Alive fails for the same reason.
func Alive(int) bool { panic("proc: processes can be looked at on Linux only") }

// WithArgument fails for the same reason.
func WithArgument(string) []Process { panic("proc: processes can be looked at on Linux only") }
