package bash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
)

// Name is what results call the backend.
const Name = "bash"

// Options makes a backend. The zero value of each field is its default.
type Options struct {
	// Env is what commands inherit after the filter for kernels, which keeps
	// secrets out. nil: an empty environment.
	Env []string
	// Shell is the shell to use, absolute. "": bash from the PATH of Env, else
	// sh.
	Shell string
	// Owner owns commands, and all that they start. nil: nothing does, and what has
	// left the group of a command stays when it has ended.
	Owner *process.Owner
}

// Backend makes interpreters. Any goroutine may use it.
type Backend struct {
	env   []string
	shell string
	owner *process.Owner
}

// New makes a backend.
func New(o Options) *Backend {
	return &Backend{env: pyenv.Filter(o.Env), shell: o.Shell, owner: o.Owner}
}

// ErrNoShell says that there is no shell to run commands with.
var ErrNoShell = errors.New("no shell: neither bash nor sh is on PATH")

// Name returns [Name].
func (b *Backend) Name() string { return Name }

// Start makes an interpreter. It costs nothing: the shell is started by Execute.
func (b *Backend) Start(_ context.Context, o kernel.StartOptions) (kernel.Interpreter, error) {
	shell := b.shell
	if shell == "" {
		shell = lookShell(b.env)
	}
	if shell == "" {
		return nil, ErrNoShell
	}
	if info, err := os.Stat(o.Key.Cwd); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the working directory %s is not a directory", o.Key.Cwd)
	}
	env := slices.Clone(b.env)
	for name, value := range o.Env {
		env = append(env, name+"="+value)
	}
	return &Interpreter{shell: shell, owner: b.owner, dir: o.Key.Cwd, env: env, done: make(chan struct{})}, nil
}

// lookShell finds bash, else sh, on the PATH of env. Relative entries do not
// count: they would mean another program in each directory.
func lookShell(env []string) string {
	path := ""
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); name == "PATH" {
			path = value
		}
	}
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	for _, name := range []string{"bash", "sh"} {
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) {
				continue
			}
			file := filepath.Join(dir, name+suffix)
			if info, err := os.Stat(file); err == nil && !info.IsDir() && (suffix != "" || info.Mode()&0o111 != 0) {
				return file
			}
		}
	}
	return ""
}

var _ kernel.Backend = (*Backend)(nil)
