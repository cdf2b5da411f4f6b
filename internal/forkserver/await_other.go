//go:build unix && !linux

package forkserver

import "github.com/coppice-run/coppice/internal/process"

// awaitEnd returns when the process is gone.
func awaitEnd(id process.Identity) { pollEnd(id) }
