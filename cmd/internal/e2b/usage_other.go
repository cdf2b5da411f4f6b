//go:build !linux

package e2b

// used is not known here.
func used(int) (seconds float64, resident int64) { return 0, 0 }

// memoryTotal is not known here.
func memoryTotal() int64 { return 0 }

// diskTotal is not known here.
func diskTotal(string) int64 { return 0 }

// children are not known here.
func children(int) []string { return nil }
