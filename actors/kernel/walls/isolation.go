package walls

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/egress"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// Isolation is kernel.Isolation as a backend keeps it; its folders are absolute, see
// [Absolute].
type Isolation kernel.Isolation

// Rung resolves the name of a rung. A rung that was named and is not available is an
// error.
func (i Isolation) Rung() (sandbox.Level, error) {
	if i.Users && i.Level != kernel.IsolationUser && i.Level != kernel.IsolationBubblewrap {
		return sandbox.Off, errors.New("a user for each session is had on the rungs user and bubblewrap, one of which has to be named")
	}
	l, err := i.level()
	if err == nil {
		err = i.network(l)
	}
	return l, err
}

func (i Isolation) level() (sandbox.Level, error) {
	switch i.Level {
	case "":
		return sandbox.AtMost(sandbox.Privileges), nil
	case kernel.IsolationStrongest:
		if len(i.Hosts) > 0 && !i.Network {
			return sandbox.AtMost(sandbox.Seccomp), nil // above, there is no way to the proxy
		}
		return sandbox.Strongest(), nil // never one that gives files other owners
	}
	if l, ok := sandbox.Named(i.Level); ok {
		err := sandbox.Available(l)
		if err == nil && i.Users {
			err = sandbox.Available(sandbox.User)
		}
		return l, err
	}
	return sandbox.Off, fmt.Errorf("the isolation %q is not one of off, privileges, landlock, seccomp, user, bubblewrap, gvisor, strongest", i.Level)
}

// network says why a rung cannot keep to the part of the network that was asked for.
func (i Isolation) network(l sandbox.Level) error {
	if err := kernel.Isolation(i).Contradicts(); err != nil {
		return err
	}
	if _, err := egress.Parse(i.Hosts); err != nil {
		return err
	}
	return i.outline(l).CheckNetwork()
}

// outline is what the rules say of a rung and of the network.
func (i Isolation) outline(l sandbox.Level) sandbox.Rules {
	rules := sandbox.Rules{Level: l, Network: i.Network, Loopback: i.Loopback || len(i.Hosts) > 0}
	if len(i.Hosts) > 0 {
		rules.Port = 1 // whichever it will be
	}
	return rules
}

// Active returns the rung that sessions would be on, and what it does, in words.
// The error is why it cannot be had.
func (i Isolation) Active() (level, description string, err error) {
	l, err := i.Rung()
	if err != nil {
		return "", "", err
	}
	description = i.outline(l).Describe()
	if i.hasUsers(l) && l != sandbox.User {
		description += "; a user of its own for each session, and one for programs"
	}
	if part := i.reaches(l); part != "" {
		description += "; of the network: " + part
	}
	return l.String(), description, nil
}

// reaches says what of the network a rung that keeps from it leaves open, "" for nothing.
func (i Isolation) reaches(l sandbox.Level) string {
	switch {
	case l < sandbox.Landlock:
		return ""
	case i.Network:
		return "all"
	case len(i.Hosts) > 0:
		return strings.Join(i.Hosts, ", ") + ", by a proxy"
	case i.Loopback && l < sandbox.Bubblewrap:
		return "the ports of this machine"
	default:
		return ""
	}
}

// Rules returns the rules for an interpreter whose temporary folder is temp.
func (i Isolation) Rules(python, temp string) (sandbox.Rules, error) {
	l, err := i.Rung()
	if err != nil {
		return sandbox.Rules{}, fmt.Errorf("isolate the sessions: %w", err)
	}
	r := sandbox.Rules{Level: l, Network: i.Network, Private: i.Private, Users: i.hasUsers(l)}
	if l < sandbox.Landlock {
		return r, nil
	}
	r.Write = append(append(r.Write, i.Write...), temp)
	r.Read = append(append(r.Read, i.Read...), sandbox.InterpreterPaths(python)...)
	return r, nil
}

// hasUsers says whether each session has a user of its own on a rung.
func (i Isolation) hasUsers(l sandbox.Level) bool {
	return l == sandbox.User || i.Users && l == sandbox.Bubblewrap
}

// Closed is why a session cannot be in a folder.
func Closed(dir string) error {
	return fmt.Errorf("the isolation keeps sessions out of %s; name it, or a folder above it, in Isolation.Write or Read", dir)
}

// Absolute makes the folders of an isolation absolute.
func Absolute(i kernel.Isolation) (kernel.Isolation, error) {
	if i.Write == nil {
		i.Write = []string{"."}
	}
	for _, list := range []*[]string{&i.Write, &i.Read} {
		all := make([]string, 0, len(*list))
		for _, p := range *list {
			abs, err := filepath.Abs(p)
			if err != nil {
				return i, fmt.Errorf("the folder %q of the isolation: %w", p, err)
			}
			all = append(all, abs)
		}
		*list = all
	}
	return i, nil
}
