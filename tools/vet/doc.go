// Command vet looks at a module as go vet does, for systems other than the one it runs on.
//
//	go -C tools/vet run . ../.. darwin windows
//
// go vet compiles everything that a package imports, the standard library included, for
// each system anew, since it reads the types of those packages from what the compiler
// writes. Here all packages are type-checked from their sources instead, which makes no
// code, and takes a fraction of the time where nothing has been compiled for the system.
// For the machine's own system go vet is as fast, since its builds and tests need the same
// compiled packages.
//
// # Guarantees
//
//   - The analyzers are those of go vet, with its defaults. Should the Go in use have one
//     that is missing here, this is said, as an error.
//   - Packages are analyzed with their tests, those outside of the package too, and files
//     that build tags leave out are looked at as far as go vet does.
//   - Facts are those of go vet: functions that print or do not return are followed into
//     dependencies. The bodies of dependencies are analyzed for these facts alone.
//   - What does not load or type-check is a finding, in dependencies too; unlike go vet,
//     which ends with the first one of a package, it tells all of them.
//
// The result is 1 with findings, 2 where the work could not be done. A finding is a line
// on standard error, as go vet prints it.
package main
