package main

import (
	"os"

	"github.com/coppice-run/coppice/cmd/internal/cli"
)

func main() {
	os.Exit(run())
}

// run is the program, up to its exit code.
func run() int {
	engines := &cli.Directories{Program: "coppice-fleet", Encrypted: encrypted, Open: open, Sandboxes: openSandboxes}
	return cli.MainWith(engines, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())
}
