package walls

import (
	"fmt"
	"slices"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// Confine puts a program behind the walls that sessions are behind. Their temporary
// folder is the program's, where the system's own is closed to it. python is the interpreter
// that runs its owner.
func (i Isolation) Confine(program kernel.Program, python string, folders *Folders, out *Egress) (kernel.Confined, error) {
	level, err := i.Rung()
	if err != nil {
		return kernel.Confined{}, fmt.Errorf("isolate the process: %w", err)
	}
	temp, env := "", []string(nil)
	if level >= sandbox.Landlock {
		if temp, err = folders.Temporary(); err != nil {
			return kernel.Confined{}, err
		}
		env = []string{"TMPDIR=" + temp}
	}
	// What owns the program is behind its walls, and has to run there.
	rules, err := i.Rules(python, temp)
	if err == nil {
		env, err = out.Open(i, &rules, env)
	}
	if err != nil {
		return kernel.Confined{}, err
	}
	// A program is a file like an interpreter: what is beside it may be read, too. But what
	// stands where the confined may write, a link or a pyvenv.cfg, is their wish to read
	// something; and where nothing is shared, a name alone opens nothing.
	if level >= sandbox.Landlock && !i.Private && !rules.Changes(program.Path) {
		for _, path := range sandbox.InterpreterPaths(program.Path) {
			if !rules.Covers(path) {
				rules.Read = append(rules.Read, path)
			}
		}
	}
	// The rights to become a session's user are the fork server's alone: a program has the
	// walls of the rung below.
	if rules.Users = false; rules.Level == sandbox.User {
		rules.Level = sandbox.Seccomp
	}
	if rules.Inside() {
		if rules.Scratch, err = folders.Scratch(); err != nil {
			return kernel.Confined{}, err
		}
	}
	wrapped, done, err := rules.Wrap(sandbox.Command{
		Path: program.Path, Args: program.Args, Dir: program.Dir, Env: append(slices.Clip(program.Env), env...), Terminal: program.Terminal,
		Bounds: sandbox.Bounds{AddressSpace: program.Memory, Files: program.Files, FileSize: program.FileSize},
	})
	if err != nil {
		done()
		return kernel.Confined{}, fmt.Errorf("isolate the process: %w", err)
	}
	c := kernel.Confined{Path: wrapped.Path, Args: wrapped.Args, Files: wrapped.Files, Done: done, Env: env}
	if rules.Inside() {
		c.Env, c.Sealed, c.Signal, c.Over = wrapped.Env, true, wrapped.Signal, wrapped.Over
	}
	if level > sandbox.Off {
		c.Thread, c.Name = rules.Confine, rules.Name()
	}
	return c, nil
}
