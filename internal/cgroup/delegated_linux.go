package cgroup

import "golang.org/x/sys/unix"

// delegated says whether systemd has marked a group as left to its processes.
func delegated(dir string) bool {
	var value [1]byte
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	return false
}
