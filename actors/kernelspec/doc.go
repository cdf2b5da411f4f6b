// Package kernelspec has the backends of a host: one for sessions that name no kernelspec, and, where
// there is one, a second beside it for those that name one of its own.
//
// # Guarantees
//
//   - A kernelspec that sessions have without naming it has no name in a session's key: who
//     names it has the same session. Every other one makes another session.
//   - What the second backend has for itself alone goes before what the first one may have.
//   - Nothing here waits, but for [Backends.Kernelspecs].
//
// A value is immutable, and any goroutine may call its methods.
package kernelspec
