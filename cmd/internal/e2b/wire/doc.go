// Package wire makes the code of the two services that E2B's clients speak to over
// Connect: filesystem and process, below. The .proto files are ours, written for what
// those clients send and read; `go generate` makes the rest of them, with the plugins
// that tools/protogen pins.
package wire

//go:generate go -C ../../../../tools/protogen run . ../../cmd/internal/e2b/wire filesystem/filesystem.proto process/process.proto
