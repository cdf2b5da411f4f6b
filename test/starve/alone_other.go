//go:build !unix

package starve

import "os/exec"

// alone does nothing: this system has no sessions.
func alone(*exec.Cmd) {}
