// Package sandbox confines processes that the host starts, and what they start:
// with what Linux lets ordinary users impose on themselves. It needs no container, no
// root and no daemon.
//
// # The ladder
//
//	off          nothing
//	privileges   no_new_privs: no program that is started gains rights (setuid)
//	landlock     and files and TCP by rules of the kernel, no signal, trace or
//	             abstract socket to a process outside, and no capabilities
//	bubblewrap   and file system, network and IPC of its own, by namespaces
//
// Each rung holds what those below it hold, with one difference: bubblewrap does
// the files in place of Landlock, which would not let it mount.
//
// # Guarantees
//
//   - [Rules.Confine] works on the calling thread alone, which has to be thrown
//     away afterwards; see Confine in package process. The host itself is never
//     confined.
//   - A rung that was asked for by name and is not available is an error, never a
//     lower rung. [Strongest] is the highest available.
//   - Reading is confined as well: to system folders, the interpreter's own and
//     those that the rules name. A home folder is not among them.
//
// # What it does not do
//
// Landlock before ABI 10 knows TCP, not UDP, and it does not hide that files exist:
// their names and times can still be read. Sessions of one host are
// in one sandbox: they are not protected from one another. Everything shares the
// kernel of the host; code that attacks the kernel needs a virtual machine around
// it.
//
// Any goroutine may call the functions. Outside Linux the only rung is off.
package sandbox
