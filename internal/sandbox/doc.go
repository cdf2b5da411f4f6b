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
//	seccomp      and a filter of system calls: no sockets of the network at all, nothing
//	             done to limits, priorities and memory of others, no System V memory, no
//	             namespaces, keys, io_uring and other parts of the kernel that few
//	             programs need; permissions, owners, times and attributes of files are
//	             changed in the folders that may be written, and files are watched (inotify)
//	             in those and in the ones that [Rules.Read] names, by a broker
//	user         and a user of its own for each session, and one for all programs of a
//	             workspace, see package users
//	bubblewrap   in place of that, file system, network, IPC and shared memory of its
//	             own, by namespaces; with [Rules.Users] the users too
//	gvisor       a kernel of its own: a process of gVisor (the program runsc) serves the
//	             system calls of all that is in a sandbox
//
// Each rung holds what those below it hold, with these differences: bubblewrap does
// the files in place of Landlock, which would not let it mount, and so needs no broker;
// and it has users only where they are asked for. What gvisor does not refuse is done to the
// sandbox's own kernel, and reaches nothing else.
//
// # Sandboxes of gVisor
//
// [Rules.Wrap] writes down what a sandbox is to be like, in a folder below [Rules.Scratch], and
// returns the command that makes it: the system's folders, the interpreter and
// [Rules.Read] to read, [Rules.Write] to change, /dev/shm, /proc and /sys of its own, no network but
// a loopback of its own. As root a sandbox is another user's, with nothing but a folder; from other users
// runsc makes a user namespace. In both the code is root there, without any rights.
//
// A sandbox gets descriptors as its stdin, stdout and stderr alone; over a socket that is one
// of them it takes others, as processes of the host do. Its processes have no numbers
// on the host, and no signal reaches them but by [Command.Signal]; the host sees what the sandbox runs in: runsc, its
// gofer, which opens files for it, and the kernel. These descend from the command: the end of runsc,
// however it comes, ends the others.
//
//	Wrap ──▶ described ──runsc run──▶ running ──its first process ends, or runsc──▶ gone
//
// # The broker
//
// A filter sees the arguments of a call and not what they point to, so that it cannot
// tell chmod in a session's folder from chmod elsewhere; to refuse all of it would break
// shutil.copy. The kernel hands such calls to a goroutine of this process, which reads
// the path once, opens it, looks at what it got, and changes that or refuses. It does
// for a process what that might do itself and nothing more: to its own files alone,
// without setuid, and without attributes of the system. A call costs some 50 µs; all
// others cost nothing that can be measured.
//
// # Guarantees
//
//   - [Rules.Confine] works on the calling thread alone, which has to be thrown
//     away afterwards; see Confine in package process. The host itself is never
//     confined.
//
//   - A rung that was asked for by name and is not available is an error, never a
//     lower rung. [Strongest] is the highest available.
//
//   - Reading is confined as well: to system folders, the interpreter's own and
//     those that the rules name. A home folder is not among them. For a host of root,
//     which is the owner of what the system closes to others, /etc and /opt are opened in
//     parts: what others may read when the rules are made. A folder of them in which one is
//     closed cannot be listed with Landlock, whose rules hold for all below.
//
//   - From seccomp on, Confine leaves a goroutine, the broker, which ends with the last
//     process under the filter.
//
// # What it does not do
//
// It does not hide that files exist: their names and times can still be read, and on the
// rung landlock whoever may read a file outside may hear of what happens to it. Landlock
// before ABI 10 knows TCP, not UDP. Below the rung user, sockets with a path (that of an
// SSH agent) and files in /dev/shm are the user's, for a session too, and sessions of one
// host share what they may write; [Rules.Private] closes /dev/shm. The command lines of all processes can be read on
// every rung below gvisor. Debuggers do not work from seccomp on, and a process sets the affinity and
// the scheduling of itself alone, by the number 0; who asks for the usual scheduling by another
// number is told that it is done, and nothing is. [github.com/coppice-run/coppice/environment.Walls]
// is the table of it, and package test/escape proves each cell. Below gvisor
// everything shares the kernel of the host; code that attacks the kernel needs that rung, or a virtual
// machine around it.
//
// Any goroutine may call the functions. Outside Linux the only rung is off.
package sandbox
