package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/file/temp"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// isolation is kernel.Isolation as this backend keeps it; its folders are absolute.
type isolation kernel.Isolation

// level resolves the name of a rung. A rung that was named and is not available is an
// error.
func (i isolation) level() (sandbox.Level, error) {
	if i.Users && i.Level != kernel.IsolationUser && i.Level != kernel.IsolationBubblewrap {
		return sandbox.Off, errors.New("a user for each session is had on the rungs user and bubblewrap, one of which has to be named")
	}
	switch i.Level {
	case "":
		return sandbox.AtMost(sandbox.Privileges), nil
	case kernel.IsolationStrongest:
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

// active returns the rung that sessions would be on, and what it does, in words.
// The error is why it cannot be had.
func (i isolation) active() (level, description string, err error) {
	l, err := i.level()
	if err != nil {
		return "", "", err
	}
	description = sandbox.Describe(l)
	if i.users(l) && l != sandbox.User {
		description += "; a user of its own for each session"
	}
	return l.String(), description, nil
}

// rules returns the rules for an interpreter whose temporary folder is temp.
func (i isolation) rules(python, temp string) (sandbox.Rules, error) {
	l, err := i.level()
	if err != nil {
		return sandbox.Rules{}, fmt.Errorf("isolate the sessions: %w", err)
	}
	r := sandbox.Rules{Level: l, Network: i.Network, Private: i.Private, Users: i.users(l)}
	if l < sandbox.Landlock {
		return r, nil
	}
	r.Write = append(append(r.Write, i.Write...), temp)
	r.Read = append(append(r.Read, i.Read...), sandbox.InterpreterPaths(python)...)
	return r, nil
}

// users says whether each session has a user of its own on a rung.
func (i isolation) users(l sandbox.Level) bool {
	return l == sandbox.User || i.Users && l == sandbox.Bubblewrap
}

// confined finishes the options of a fork server: its rules, and a temporary
// folder that only its sessions use where the system's own is closed to them.
func (s *Server) confined(rt pyenv.Runtime) (sandbox.Rules, []string, error) {
	env := rt.Env
	if s.o.Limits.Memory > 0 {
		env = withDefault(env, "MALLOC_ARENA_MAX", "2") // each arena maps 64 MiB
	}
	l, err := isolation(s.o.Isolation).level()
	temp := ""
	if err == nil && l >= sandbox.Landlock {
		temp, err = s.temporary()
		env = append(without(env, "TMPDIR"), "TMPDIR="+temp)
	}
	if err != nil {
		return sandbox.Rules{}, nil, fmt.Errorf("isolate the sessions: %w", err)
	}
	rules, err := isolation(s.o.Isolation).rules(rt.Path, temp)
	if err == nil && rules.Inside() {
		rules.Scratch, err = s.scratch()
	}
	if err == nil && rules.Users {
		err = reachable(rt.Path)
	}
	return rules, env, err
}

// temporary returns the folder for temporary files of confined sessions, which
// Close removes.
func (s *Server) temporary() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.temp == "" {
		dir, err := temp.Make("sessions")
		if err != nil {
			return "", err
		}
		s.temp = dir
	}
	return s.temp, nil
}

// scratch returns the folder for what sandboxes keep, which Close removes.
func (s *Server) scratch() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boxes == "" {
		dir, err := temp.Make("boxes")
		if err != nil {
			return "", err
		}
		s.boxes = dir
	}
	return s.boxes, nil
}

// clean removes the folders for temporary files.
func (s *Server) clean() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, dir := range []*string{&s.temp, &s.boxes} {
		if *dir != "" {
			err = errors.Join(err, temp.Remove(*dir))
			*dir = ""
		}
	}
	if err != nil {
		return fmt.Errorf("remove the temporary files of sessions: %w", err)
	}
	return nil
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

// closed is why a session cannot be in a folder.
func closed(dir string) error {
	return fmt.Errorf("the isolation keeps sessions out of %s; name it, or a folder above it, in Isolation.Write or Read", dir)
}
