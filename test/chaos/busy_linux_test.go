package chaos_test

import (
	"fmt"
	"os"
	"path/filepath"
)

// waited returns what the threads of this process have run, and what they have waited
// for a processor, in nanoseconds.
func waited() (ran, waited int64) {
	files, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		var r, w int64
		if n, _ := fmt.Sscan(string(data), &r, &w); n == 2 {
			ran, waited = ran+r, waited+w
		}
	}
	return ran, waited
}
