package walls

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// Confine puts a program behind the walls that sessions are behind. Their temporary
// folder is the program's, where the system's own is closed to it. python is the interpreter
// that runs its owner. Where sessions have users of their own, programs have one, too.
func (i Isolation) Confine(program kernel.Program, python string, folders *Folders, out *Egress, users *Pool) (kernel.Confined, error) {
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
	var user *User
	if rules.Users {
		if user, err = users.Program(context.Background(), python, temp, rules); err != nil {
			return kernel.Confined{}, fmt.Errorf("give programs a user of their own: %w", err)
		}
		env = append(env, user.home(program.Env, rules)...)
	}
	if rules.Inside() {
		if rules.Scratch, err = folders.Scratch(); err != nil {
			return kernel.Confined{}, err
		}
	}
	command := sandbox.Command{
		Path: program.Path, Args: program.Args, Dir: program.Dir, Env: append(slices.Clip(program.Env), env...), Terminal: program.Terminal,
		Bounds: sandbox.Bounds{AddressSpace: program.Memory, Files: program.Files, FileSize: program.FileSize},
	}
	c := kernel.Confined{}
	if user != nil {
		c.User = user.Process()
		if c.Becomes = rules.Level >= sandbox.Bubblewrap; c.Becomes { // who makes the namespaces has to be root
			command = command.As(python, c.User.UID, c.User.GID, c.User.Groups...)
		}
	}
	wrapped, done, err := rules.Wrap(command)
	if err != nil {
		done()
		return kernel.Confined{}, fmt.Errorf("isolate the process: %w", err)
	}
	c.Path, c.Args, c.Files, c.Done, c.Env = wrapped.Path, wrapped.Args, wrapped.Files, done, env
	if rules.Inside() {
		c.Env, c.Sealed, c.Signal, c.Over = wrapped.Env, true, wrapped.Signal, wrapped.Over
	}
	if level > sandbox.Off {
		c.Thread, c.Name = rules.Confine, rules.Name()
	}
	return c, nil
}

// home is what the user's programs have set: the folders of their own that sessions have, too, but
// where they were given a home which they may write.
func (h *User) home(env []string, rules sandbox.Rules) []string {
	set := []string{"TMPDIR=" + h.Folder()}
	for _, kv := range slices.Backward(env) { // the last one holds
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && strings.HasPrefix(home, "/") && rules.Changes(home) {
			return set
		} else if ok {
			break
		}
	}
	return append(set, "HOME="+h.Folder())
}
