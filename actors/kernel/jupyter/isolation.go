package jupyter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/walls"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// isolate resolves what was asked for, or says why kernels of a gateway cannot have it. The
// walls stand around the gateway with its kernels: one that others use, or run, has none.
func isolate(asks kernel.Isolation, url string, shared, keep bool) (walls.Isolation, error) {
	i, err := walls.Absolute(asks)
	if err != nil {
		return walls.Isolation{}, err
	}
	switch asked := i.Level; {
	case i.Users, asked == kernel.IsolationUser:
		return walls.Isolation{}, errors.New("the gateway backend has no user of its own for each kernel (isolation user); use the runner backend, or the isolation seccomp or bubblewrap")
	case asked == kernel.IsolationGVisor:
		return walls.Isolation{}, errors.New("the gateway backend does not run in a kernel of its own (isolation gvisor): its ports and sockets are not in there; use the runner backend, or the isolation bubblewrap")
	case asked == kernel.IsolationStrongest:
		i.Level = sandbox.AtMost(sandbox.Bubblewrap).String()
	case asked == "", asked == kernel.IsolationPrivileges && (url != "" || shared):
		i.Level = kernel.IsolationOff
	}
	switch walled := kernel.Isolation(i).Walled(); {
	case walled && url != "":
		return walls.Isolation{}, fmt.Errorf("kernels of a server that somebody else runs cannot be isolated (%s was asked for); use the runner backend, or leave the URL out", asks.Level)
	case walled && keep:
		return walls.Isolation{}, fmt.Errorf("KeepSessions: the walls around kernels (isolation %s) end with their host; use the isolation %s, or leave KeepSessions out", asks.Level, kernel.IsolationOff)
	}
	return walls.Isolation(i), nil
}

// confined returns the rules for a gateway and its kernels, and their environment: where the
// system's folder for temporary files is closed to them, with one that only they use.
func confined(rt pyenv.Runtime, asks kernel.Isolation, folders *walls.Folders) (sandbox.Rules, []string, error) {
	i := walls.Isolation(asks)
	if i.Level == "" {
		i.Level = kernel.IsolationOff
	}
	level, err := i.Rung()
	if err != nil {
		return sandbox.Rules{}, nil, fmt.Errorf("isolate the kernels: %w", err)
	}
	temp, env := "", rt.Env
	if level >= sandbox.Landlock {
		if temp, err = folders.Temporary(); err != nil {
			return sandbox.Rules{}, nil, err
		}
		env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, "TMPDIR=") })
		env = append(env, "TMPDIR="+temp)
	}
	rules, err := i.Rules(rt.Path, temp)
	return rules, env, err
}
