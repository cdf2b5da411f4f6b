package environment

import (
	"fmt"
	"os"

	"github.com/coppice-run/coppice/internal/sandbox"
)

// Wall is what stands against one attempt of [TryToEscape].
type Wall struct {
	// Attempt is what is tried, as in [Escape].
	Attempt string
	// Root and User name the lowest rung that prevents it, for a host of root and of
	// another user: "off" where the system itself does.
	Root, User string
	// Why says of an attempt that only the higher rungs prevent what that means.
	Why string
	// Own says that on the rung gvisor it is done to a kernel that is its sandbox's alone, and
	// reaches nothing else there, whether it succeeds or not.
	Own bool

	root, user sandbox.Level
	version    int  // of Landlock, from which it holds
	network    bool // a session that has the network may
}

// holds says whether a rung of this process prevents the attempt.
func (w Wall) holds(rung sandbox.Level, network bool) bool {
	from := w.user
	if os.Geteuid() == 0 {
		from = w.root
	}
	if w.network && network || rung < from || w.Own && rung == sandbox.GVisor {
		return false
	}
	return rung == sandbox.GVisor || rung >= sandbox.Seccomp && w.network || sandbox.ABI() >= w.version || rung < sandbox.Landlock
}

// Versions of Landlock that brought something.
const (
	withTCP    = 4
	withScopes = 6
)

// Walls returns the attempts of [TryToEscape], in their order, and what prevents each.
func Walls() []Wall {
	const (
		off, privileges, landlock = sandbox.Off, sandbox.Privileges, sandbox.Landlock
		filter, user, namespaces  = sandbox.Seccomp, sandbox.User, sandbox.Bubblewrap
		kernel                    = sandbox.GVisor
	)
	all := []Wall{
		{Attempt: "gain rights by a setuid program", Own: true, root: privileges, user: privileges},
		{Attempt: "have rights beyond other users", root: landlock, user: off},

		{Attempt: "read a file outside", root: landlock, user: landlock},
		{Attempt: "read a file of the system that is closed to others", root: landlock, user: off},
		{Attempt: "write a file outside", root: landlock, user: landlock},
		{Attempt: "write a file outside by a program", root: landlock, user: landlock},
		{Attempt: "remove a file outside", root: landlock, user: landlock},
		{Attempt: "rename a file outside", root: landlock, user: landlock},
		{Attempt: "change the owner of a file outside", root: filter, user: filter},
		{Attempt: "change the times of a file outside", root: filter, user: filter},
		{Attempt: "change the attributes of a file outside", root: filter, user: filter},
		{Attempt: "change the permissions of a file outside", root: filter, user: filter},
		{Attempt: "change the permissions of a file outside by a program", root: filter, user: filter},
		{Attempt: "change the permissions of a file that may be read", root: filter, user: filter},
		{Attempt: "watch a folder outside", root: filter, user: filter},

		{Attempt: "connect to a port of this machine", root: landlock, user: landlock, version: withTCP, network: true},
		{Attempt: "connect to a port by multipath TCP", root: filter, user: filter},
		{Attempt: "connect to a port by a message", root: filter, user: filter, network: true},
		{Attempt: "listen on a port", Own: true, root: filter, user: filter, network: true},
		{Attempt: "send a datagram", Own: true, root: filter, user: filter, network: true},
		{Attempt: "open a socket of the kernel", Own: true, root: filter, user: filter, network: true},
		{Attempt: "open a socket to virtual machines", Own: true, root: filter, user: filter},
		{Attempt: "open a socket of the kernel's ciphers", Own: true, root: filter, user: filter},
		{Attempt: "open a socket by a number in disguise", Own: true, root: filter, user: filter, network: true},
		{
			Attempt: "connect to a socket outside", root: user, user: namespaces,
			Why: "neither Landlock nor a filter tells sockets with a path apart: below this rung a session reaches those of its user, such as that of an SSH agent",
		},
		{Attempt: "connect to an abstract socket", root: landlock, user: landlock, version: withScopes},
		{
			Attempt: "read shared memory of the host", root: user, user: namespaces,
			Why: "/dev/shm is where Python's multiprocessing keeps its memory: below this rung the user's is shared, and is kept from others by its permissions alone",
		},
		{Attempt: "attach System V memory of the host", root: filter, user: filter},
		{Attempt: "make System V semaphores", Own: true, root: filter, user: filter},
		{Attempt: "make a System V queue", Own: true, root: filter, user: filter},

		{Attempt: "signal the host", root: landlock, user: landlock, version: withScopes},
		{Attempt: "read the environment of the host", root: landlock, user: landlock},
		{
			Attempt: "read the command line of the host", root: kernel, user: kernel,
			Why: "below this rung every user of a machine sees the command lines of all: no secret belongs there, and Coppice puts none there",
		},
		{Attempt: "set limits of the host", root: filter, user: filter},
		{Attempt: "set the priority of the host", root: landlock, user: filter},
		{Attempt: "choose the processors of the host", root: landlock, user: filter},
		{Attempt: "trace the host", root: landlock, user: landlock},
		{Attempt: "trace a process of its own", Own: true, root: filter, user: filter, Why: "debuggers do not work on these rungs"},
		{Attempt: "read the memory of the host", root: landlock, user: landlock},
		{Attempt: "open the memory of the host", root: landlock, user: landlock},
		{Attempt: "take a descriptor of the host", root: landlock, user: landlock},
		{Attempt: "compare itself with the host", root: landlock, user: landlock},

		{Attempt: "make calls of another architecture", Own: true, root: filter, user: filter},
		{Attempt: "use the keys of the kernel", Own: true, root: filter, user: filter},
		{Attempt: "add a key to the kernel", Own: true, root: filter, user: filter},
		{Attempt: "use io_uring", Own: true, root: filter, user: filter},
		{Attempt: "handle page faults", Own: true, root: filter, user: filter},
		{Attempt: "count the events of a processor", Own: true, root: filter, user: filter},
		{Attempt: "make a table of a kernel program", root: landlock, user: filter},
		{Attempt: "make a namespace", Own: true, root: filter, user: filter},
		{Attempt: "make a namespace by clone3", Own: true, root: filter, user: filter},
		{Attempt: "enter a namespace", root: landlock, user: off},
		{Attempt: "mount a file system", root: landlock, user: off},
		{Attempt: "turn off the randomness of addresses", Own: true, root: filter, user: filter},
		{Attempt: "type into a terminal", root: landlock, user: landlock},
		{Attempt: "type into a terminal in disguise", Own: true, root: filter, user: filter},
		{Attempt: "open a file by its handle", Own: true, root: landlock, user: off},
		{Attempt: "load a module into the kernel", root: landlock, user: off},
		{Attempt: "load another kernel", root: landlock, user: off},
	}
	for i := range all {
		all[i].Root, all[i].User = all[i].root.String(), all[i].user.String()
	}
	return all
}

// LacksRung says why this process cannot have a rung of isolation, by its name. nil: it
// can.
func LacksRung(name string) error {
	l, known := sandbox.Named(name)
	if !known {
		return fmt.Errorf("%q is no rung of isolation", name)
	}
	return sandbox.Available(l)
}
