//go:build !linux

package opportunity

import "time"

// slept is not known here.
func slept() time.Duration { return 0 }
