package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/internal/home"
)

// keepVariable is heard where --keep-sessions is not given.
const keepVariable = "COPPICE_KEEP_SESSIONS"

// keepName is the name of servers among the hosts of a home: no other host takes over what
// they leave.
const keepName = "serve"

// keeping is the flag that has the sessions of a server outlive it.
type keeping bool

// add adds the flag to a command.
func (k *keeping) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar((*bool)(k), "keep-sessions", false, "have sessions and what runs in them outlive a server that is killed, for a minute, and take over those of the one before, on Linux with the runner backend, which it takes where --backend names none (default: COPPICE_KEEP_SESSIONS)")
}

// fill fills in what the flag says, or the variable in env. Where sessions are to outlive the
// server, the backend auto is the runner. The error is a UsageError.
func (k keeping) fill(env []string, f *console.HostFlags, o *coppice.Options) error {
	if !k.wanted(env) {
		return nil
	}
	switch f.Backend {
	case "gateway":
		return console.Usagef("--keep-sessions: kernels of the gateway backend end with the server; use --backend runner")
	case "auto", "":
		name := keepVariable
		if k {
			name = "--keep-sessions"
		}
		f.TakeRunner(name)
	}
	o.KeepSessions, o.KeepName = true, keepName
	return nil
}

// wanted says whether the flag asks for it, or the variable in env.
func (k keeping) wanted(env []string) bool { return bool(k) || home.SwitchedOn(env, keepVariable) }
