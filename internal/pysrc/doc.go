// Package pysrc holds the Python source of the runner backend: package
// coppice_runner, which is a session or a fork server, and the few lines that
// bring it into an interpreter.
//
// A Jupyter kernel gets its modules from here, too: see KernelModules and KernelBegin.
//
// # Guarantees
//
//   - Standard library only, Python 3.9 and newer.
//   - Nothing of the runner is written to disk: the source travels over a socket, so that no
//     cleaner of temporary files can take it away from a host that runs.
//
// The package's Python files have tests of their own in tests, which the Go
// test runs.
package pysrc
