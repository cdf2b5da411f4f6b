package runner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel/walls"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// confined finishes the options of a fork server: its rules, and a temporary
// folder that only its sessions use where the system's own is closed to them.
func (s *Server) confined(rt pyenv.Runtime) (sandbox.Rules, []string, error) {
	env := rt.Env
	if s.o.Limits.Memory > 0 {
		env = withDefault(env, "MALLOC_ARENA_MAX", "2") // each arena maps 64 MiB
	}
	isolation := walls.Isolation(s.o.Isolation)
	l, err := isolation.Rung()
	temp := ""
	if err == nil && l >= sandbox.Landlock {
		temp, err = s.folders.Temporary()
		env = append(without(env, "TMPDIR"), "TMPDIR="+temp)
	}
	if err != nil {
		return sandbox.Rules{}, nil, fmt.Errorf("isolate the sessions: %w", err)
	}
	rules, err := isolation.Rules(rt.Path, temp)
	if err == nil {
		env, err = s.egress.Open(isolation, &rules, env)
	}
	if err == nil && rules.Inside() {
		rules.Scratch, err = s.folders.Scratch()
	}
	if err == nil && rules.Users {
		err = walls.Reachable(rt.Path)
	}
	return rules, env, err
}

func without(env []string, name string) []string {
	kept := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			kept = append(kept, kv)
		}
	}
	return kept
}

func withDefault(env []string, name, value string) []string {
	for _, kv := range env {
		if strings.HasPrefix(kv, name+"=") {
			return env
		}
	}
	return append(slices.Clip(env), name+"="+value)
}
