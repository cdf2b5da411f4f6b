package runner

import (
	"fmt"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// Confine puts a program behind the walls that the sessions are behind. Their temporary
// folder is the program's, where the system's own is closed to it.
func (p *provided) Confine(program string, args []string) (kernel.Confined, error) {
	i := isolation(p.Server.o.Isolation)
	level, err := i.level()
	if err != nil {
		return kernel.Confined{}, fmt.Errorf("isolate the process: %w", err)
	}
	temp, env := "", []string(nil)
	if level >= sandbox.Landlock {
		if temp, err = p.Server.temporary(); err != nil {
			return kernel.Confined{}, err
		}
		env = []string{"TMPDIR=" + temp}
	}
	// A program is a file like an interpreter: what is beside it may be read, too.
	rules, err := i.rules(program, temp)
	if err != nil {
		return kernel.Confined{}, err
	}
	// The rights to become a session's user are the fork server's alone: a program has the
	// walls of the rung below.
	if rules.Users = false; rules.Level == sandbox.User {
		rules.Level = sandbox.Seccomp
	}
	wrapped, done, err := rules.Wrap(sandbox.Command{Path: program, Args: args})
	if err != nil {
		done()
		return kernel.Confined{}, fmt.Errorf("isolate the process: %w", err)
	}
	c := kernel.Confined{Path: wrapped.Path, Args: wrapped.Args, Files: wrapped.Files, Done: done, Env: env}
	if level > sandbox.Off {
		c.Thread = rules.Confine
	}
	return c, nil
}

var _ kernel.Confiner = (*provided)(nil)
