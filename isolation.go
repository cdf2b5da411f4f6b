package coppice

import (
	"fmt"
	"path/filepath"

	"github.com/coppice-run/coppice/actors/kernel/runner"
)

// Rungs of Isolation.Level.
const (
	// IsolationOff leaves sessions all rights of the host.
	IsolationOff = "off"
	// IsolationPrivileges is the default: nothing that a session starts gains
	// rights (no_new_privs).
	IsolationPrivileges = "privileges"
	// IsolationLandlock adds rules of the Linux kernel: files by folders, no TCP,
	// no signals to processes outside.
	IsolationLandlock = "landlock"
	// IsolationBubblewrap adds namespaces: a file system, network and IPC of the
	// sessions' own. It needs the program bwrap.
	IsolationBubblewrap = "bubblewrap"
	// IsolationStrongest is the highest rung that the system has.
	IsolationStrongest = "strongest"
)

// Isolation says what sessions of the runner backend are kept from. It holds for
// all sessions of a host alike: they are not protected from one another, and like
// all of this it is no replacement for a virtual machine around code that attacks
// the kernel.
type Isolation struct {
	// Level is a rung. "": IsolationPrivileges. One that is named and that the
	// system does not have is an error of Start.
	Level string
	// Write names folders that sessions may change, from IsolationLandlock on. nil:
	// the working directory of this process. A folder for temporary files is added
	// (TMPDIR). The working directories of sessions have to be under Write or Read.
	Write []string
	// Read names what else sessions may read besides the system's folders and the
	// interpreter's; the user's home is not among them.
	Read []string
	// Network allows network connections.
	Network bool
}

// resolve makes the folders absolute.
func (i Isolation) resolve() (runner.Isolation, error) {
	r := runner.Isolation{Level: i.Level, Network: i.Network}
	if i.Write == nil {
		i.Write = []string{"."}
	}
	for _, list := range []struct{ to, from *[]string }{{&r.Write, &i.Write}, {&r.Read, &i.Read}} {
		for _, p := range *list.from {
			abs, err := filepath.Abs(p)
			if err != nil {
				return r, fmt.Errorf("%w: the folder %q of the isolation: %w", ErrOptions, p, err)
			}
			*list.to = append(*list.to, abs)
		}
	}
	return r, nil
}

// check refuses what cannot be had.
func (i Isolation) check(backend string) error {
	if backend != BackendRunner {
		if i.Level != "" && i.Level != IsolationOff && i.Level != IsolationPrivileges {
			return fmt.Errorf("%w: the gateway backend cannot isolate its kernels (%s was asked for); use the runner backend", ErrOptions, i.Level)
		}
		return nil
	}
	r, err := i.resolve()
	if err != nil {
		return err
	}
	if _, _, err := r.Active(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return nil
}

// Isolation returns the rung that the host's sessions are on, and what it does, in
// words.
func (h *Host) Isolation() (level, description string) {
	if h.runner == nil {
		return IsolationOff, "the host's own rights: the gateway backend does not isolate its kernels"
	}
	r, err := h.o.Isolation.resolve()
	if err == nil {
		level, description, err = r.Active()
	}
	if err != nil {
		return IsolationOff, err.Error() // Start has refused it
	}
	return level, description
}
