// Package filesystem is made of filesystem.proto: the messages of that service of a sandbox.
// See [github.com/coppice-run/coppice/cmd/internal/e2b/wire].
package filesystem
