//go:build !linux

package load

import "time"

// nap waits for a short time.
func nap(d time.Duration) { <-time.After(d) }
