// Package processconnect is made of process.proto: its server and its client over Connect.
// See [github.com/coppice-run/coppice/cmd/internal/e2b/wire].
package processconnect
