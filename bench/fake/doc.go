// Package fake is a host whose interpreters are only pretended: the real
// supervisor, the real gateway and kernel actors and the real strategies, above
// interpreters that are a few bytes each and answer at once. It measures
// supervision alone, with more sessions than a machine could run Python for.
//
//	Session.Execute ──▶ gateway actor ──▶ kernel actor ──▶ interp
//	                    (the real ones)                    (pretended)
//
// # Guarantees
//
//   - What interpreters do depends on the code: "die" ends the interpreter under
//     the cell, a number is printed back, any other code prints "2".
//   - The calls of one session are numbered in the order in which they were
//     submitted. [Host.Check] returns every call that ran twice, or after a later
//     one, and every interpreter that lived beside another of the same session.
//
// A Host, and its sessions, may be used from any goroutine.
package fake
