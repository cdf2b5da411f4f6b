package kernel

import (
	"errors"
	"time"
)

// Rungs of [Isolation.Level].
const (
	// IsolationOff leaves sessions all rights of the host.
	IsolationOff = "off"
	// IsolationPrivileges is the default: nothing that a session starts gains
	// rights (no_new_privs).
	IsolationPrivileges = "privileges"
	// IsolationLandlock adds rules of the Linux kernel: files by folders, no TCP,
	// no signals to processes outside.
	IsolationLandlock = "landlock"
	// IsolationSeccomp adds a filter of system calls: no sockets of the network of any
	// kind, nothing done to limits, priorities and memory of other processes, permissions
	// and times of files changed in Write alone, and less of the kernel to attack.
	IsolationSeccomp = "seccomp"
	// IsolationUser adds a user of its own for each session, or for each gateway with its
	// kernels: they cannot read, signal or trace one another. It needs root.
	IsolationUser = "user"
	// IsolationBubblewrap adds namespaces: a file system, network and IPC of the
	// sessions' own. It needs the program bwrap.
	IsolationBubblewrap = "bubblewrap"
	// IsolationGVisor gives the sessions of a host or a workspace, with the fork server or the gateway
	// that they come from, a sandbox with a kernel of their own, and each program of a workspace another. It needs the program runsc of gVisor.
	IsolationGVisor = "gvisor"
	// IsolationStrongest is the highest rung that the system has.
	IsolationStrongest = "strongest"
)

// Walled reports whether the rung keeps anything from sessions but new rights. A rung
// that the system chooses counts as one.
func (i Isolation) Walled() bool {
	return i.Level != "" && i.Level != IsolationOff && i.Level != IsolationPrivileges
}

// Isolation says what sessions are kept from. It holds for all sessions of a host
// alike. They are protected from one another where each has a user of its own; from
// IsolationLandlock on those of a fork server do not signal or trace one another either,
// but share the files of Write, and /dev/shm. Like all of this it is no
// replacement for a virtual machine around code that attacks the kernel. Kernels of Jupyter
// are behind one wall with their gateway; for a server of somebody else any rung is refused.
type Isolation struct {
	// Level is a rung. "": IsolationPrivileges; for Jupyter kernels, IsolationOff. One that the
	// system does not have is refused.
	Level string
	// Write names folders that sessions may change, from IsolationLandlock on. nil:
	// the working directory of this process. A folder for temporary files is added
	// (TMPDIR). The working directories of sessions have to be under Write or Read.
	Write []string
	// Read names what else sessions may read besides the system's folders and the
	// interpreter's; the user's home is not among them.
	Read []string
	// Network allows network connections. Without it, Loopback allows TCP connections within this
	// machine, and Hosts those to hosts that it names: "api.example.com", "*.example.org",
	// "git.example.net:8443", an address; to ports 80 and 443 where none is named. They are made by a
	// proxy of the host's, which programs find by HTTP_PROXY and HTTPS_PROXY, and
	// which says what it refuses. Both take the rung IsolationSeccomp or IsolationUser; with
	// IsolationBubblewrap Loopback is a network of the sessions' own. Hosts beside Network or Loopback
	// are refused: this machine is named there by its address.
	Network  bool
	Loopback bool
	Hosts    []string
	// Private is for sessions whose neighbours are not to be trusted: what all programs of the
	// user share is closed to them (/dev/shm, so that Python's multiprocessing finds no
	// semaphores below the rung bubblewrap), and a program that a workspace runs is read where
	// it may be read, whoever names it: what is beside it is not opened.
	Private bool
	// Users gives each session a user of its own on the rung bubblewrap too; on
	// IsolationUser it is understood. Such a session has a folder of its own, to which
	// HOME and TMPDIR point, and is in a group that the folders of Write are opened to,
	// by access lists: what it makes there belongs to its user, and what was there keeps
	// its permissions. All programs of a workspace have one such user. It takes root, and an
	// interpreter that all users can reach.
	Users bool
}

// Contradicts says why Hosts cannot be had beside what else is asked for. nil: they can.
func (i Isolation) Contradicts() error {
	switch {
	case len(i.Hosts) > 0 && i.Network:
		return errors.New("the isolation allows the whole network and, of it, some hosts alone; leave out Network or Hosts")
	case len(i.Hosts) > 0 && i.Loopback:
		return errors.New("the isolation allows some hosts alone and, besides, the ports of this machine; leave out Loopback, and name 127.0.0.1 with its port among the Hosts")
	}
	return nil
}

// Outlet is implemented by an [Isolator] that keeps to Isolation.Hosts.
type Outlet interface {
	// Refused returns the hosts that were asked for and refused, the newest last. Any goroutine
	// may call it.
	Refused() []Refusal
}

// Refusal is a host of the network that was asked for and refused.
type Refusal struct {
	// Host is it, with its port.
	Host string `json:"host"`
	// Why is why it was refused the last time.
	Why string `json:"why,omitempty"`
	// Times is how often it was asked for, and Last when that was.
	Times int       `json:"times"`
	Last  time.Time `json:"last"`
}
