// Command coppice runs Python in sessions that stay alive.
package main

import (
	"os"

	"github.com/coppice-run/coppice/cmd/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
