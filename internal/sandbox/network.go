package sandbox

import "fmt"

// netPorts is the version of Landlock that knows ports.
const netPorts = 4

// CheckNetwork says why the network cannot be had as it was asked for.
func (r Rules) CheckNetwork() error {
	switch {
	case r.Network || !r.Loopback:
		return nil
	case r.Level < Seccomp:
		return fmt.Errorf("%w: a part of the network is kept to from the rung seccomp on, and not on the rung %s; take seccomp or user", ErrUnavailable, r.Level)
	case r.Level > User && r.Port != 0:
		return fmt.Errorf("%w: on the rung %s there is no way to a port of this machine; take seccomp or user", ErrUnavailable, r.Level)
	case r.Level <= User && r.Port != 0 && ABI() < netPorts:
		return fmt.Errorf("%w: this kernel does not tell ports apart (Landlock of ABI 4, Linux 6.7)", ErrUnavailable)
	}
	return nil
}
