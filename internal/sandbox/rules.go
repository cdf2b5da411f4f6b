package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/internal/file"
)

// Level is a rung of the ladder.
type Level int

// The rungs.
const (
	Off Level = iota
	Privileges
	Landlock
	Seccomp
	User
	Bubblewrap
	GVisor
)

var names = [...]string{"off", "privileges", "landlock", "seccomp", "user", "bubblewrap", "gvisor"}

// Levels returns all rungs, the lowest first.
func Levels() []Level { return []Level{Off, Privileges, Landlock, Seccomp, User, Bubblewrap, GVisor} }

// Named returns the rung of a name, and whether there is one.
func Named(name string) (Level, bool) {
	i := slices.Index(names[:], name)
	return Level(i), i >= 0
}

// String returns the rung's name.
func (l Level) String() string { return names[l] }

// ErrUnavailable is matched when this system does not have a rung.
var ErrUnavailable = errors.New("this isolation is not available")

// Rules say what a confined process may do. The zero value confines nothing.
type Rules struct {
	Level Level
	// Write names folders that may be changed, and read. They have to be there.
	Write []string
	// Read names folders and files that may be read, besides the system's. What
	// is not there is left out.
	Read []string
	// Network allows network connections.
	Network bool
	// Loopback allows TCP over IPv4 within this machine, and Port, when it is not 0, has that port
	// of the machine be the only one that can be connected to, and none be opened. It takes
	// the rung Seccomp or User, and Port Landlock of ABI 4; see [Rules.CheckNetwork].
	Loopback bool
	Port     int
	// Private closes what all programs of the user share: memory with a name (/dev/shm),
	// where the rung has not one of its own. Semaphores of Python's multiprocessing live
	// there.
	Private bool
	// Users leaves the process what it takes to become other users, and to signal
	// those: for a process of root that starts others for them, see package users.
	// They have nothing of it any more. On the rung User it is needed.
	Users bool
	// Scratch is a folder for what the rung GVisor keeps while its sandboxes run, which
	// nothing behind it sees. It is there, and its owner removes it.
	Scratch string
}

// Inside reports whether what is confined runs in a kernel of its own: its processes have
// no numbers here, what it is given comes as its standard descriptors, and limits that
// the host sets for it hold where it is.
func (r Rules) Inside() bool { return r.Level == GVisor }

// reaches says whether sockets that reach no further than this machine are made for the
// confined.
func (r Rules) reaches() bool {
	return r.Loopback && !r.Network && (r.Level == Seccomp || r.Level == User)
}

// Name tells rules from others: those of the same name confine alike.
func (r Rules) Name() string { return fmt.Sprintf("%+v", r) }

// Command is a program, as it is started.
type Command struct {
	Path string
	Args []string
	// Dir is its working directory, where its file system is its own. "": /.
	Dir string
	// Files become its descriptors from 3 on. There are none on the rung GVisor.
	Files []*os.File
	// Env is its environment, Terminal says that its stdin is a terminal, and Bounds are its
	// limits. They are for the rung GVisor, which takes them inside: what Wrap returns then
	// has an environment and no limits of its own.
	Env      []string
	Terminal bool
	Bounds   Bounds
	// Signal sends a signal to all that runs behind the rung, where a signal to the command does
	// not reach that: of what Wrap returns on the rung GVisor. nil: it does.
	Signal func(ctx context.Context, number int) error
	// Over removes what the rung keeps for the command, once that has ended; nil: nothing. What
	// it leaves goes with Scratch.
	Over func()
}

// Bounds are limits of a program and of each that it starts. 0: there is none.
type Bounds struct {
	// AddressSpace is how many bytes it may map, Files how many files it may have open,
	// and FileSize how long a file it may make.
	AddressSpace, Files, FileSize uint64
}

// become has what it runs be another user's. It stands behind the walls: who makes namespaces has
// to be root.
const become = `import os, sys
uid, gid, *groups = map(int, sys.argv[1].split(":"))
os.setgroups(groups)
os.setresgid(gid, gid, gid)
os.setresuid(uid, uid, uid)
try:  # what bubblewrap lets be inherited, which nothing does without new rights
    import ctypes
    ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522), (ctypes.c_uint32 * 6)())
except (ImportError, OSError, AttributeError):
    pass
try:
    os.chdir(sys.argv[2])
    os.execv(sys.argv[3], sys.argv[3:])
except OSError as err:
    sys.exit(f"{err.filename or sys.argv[3]}: {err.strerror}")
`

// As returns the command that python, behind the walls, has a user run, in a folder that may be
// that user's alone. It takes [Rules.Users].
func (c Command) As(python string, uid, gid int, groups ...int) Command {
	who := fmt.Sprintf("%d:%d", uid, gid)
	for _, g := range groups {
		who += fmt.Sprintf(":%d", g)
	}
	c.Args = append([]string{"-I", "-S", "-c", become, who, cmp.Or(c.Dir, "/"), c.Path}, c.Args...)
	c.Path, c.Dir = python, "/"
	return c
}

// system is what programs need to run at all.
var system = []string{"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/nix/store", "/run/current-system", "/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup"}

// devices may be used by everybody.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// shared is where semaphores and shared memory live.
const shared = "/dev/shm"

// readable returns what may be read and is there, without what lies in another
// folder of the list.
func (r Rules) readable() []string {
	var all []string
	for _, p := range append(append(slices.Clone(system), r.Read...), r.Write...) {
		if p == "" || !filepath.IsAbs(p) {
			continue
		}
		if _, err := os.Stat(p); err == nil {
			all = append(all, filepath.Clean(p))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// check refuses folders that cannot be opened up.
func (r Rules) check() error {
	for _, p := range r.Write {
		info, err := os.Stat(p)
		switch {
		case !filepath.IsAbs(p):
			return fmt.Errorf("confine: the folder %q is not absolute", p)
		case err != nil:
			return fmt.Errorf("confine: let %s be written: %w; make it, or leave it out", p, err)
		case !info.IsDir():
			return fmt.Errorf("confine: %s is not a folder, and only folders can be opened for writing", p)
		}
	}
	return nil
}

// Covers reports whether the rules open a folder, at least for reading.
func (r Rules) Covers(dir string) bool {
	if r.Level < Landlock {
		return true
	}
	dir = resolved(dir)
	for _, p := range r.readable() {
		if rel, err := filepath.Rel(resolved(p), dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return true
		}
	}
	return false
}

// Changes reports whether the rules let a file be made or changed at a path, or a link on
// the way to it. What is found there says what the confined wish, not what the host does.
func (r Rules) Changes(path string) bool {
	if r.Level < Landlock {
		return true
	}
	for _, at := range []string{path, filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path)), resolved(path)} {
		for _, p := range append([]string{shared}, r.Write...) {
			for _, root := range []string{filepath.Clean(p), resolved(p)} {
				if rel, err := filepath.Rel(root, at); err == nil && filepath.IsLocal(rel) {
					return true
				}
			}
		}
	}
	return false
}

// resolved follows links, as far as the path is there.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// maxConfig bounds a pyvenv.cfg, in bytes.
const maxConfig = 1 << 20

// InterpreterPaths returns the folders that a Python interpreter is made of: that
// of its executable, that of the one it is a link to, and that of the one which a
// virtual environment was made from.
func InterpreterPaths(python string) []string {
	found := []string{filepath.Dir(filepath.Dir(python))}
	if real, err := filepath.EvalSymlinks(python); err == nil {
		found = append(found, filepath.Dir(filepath.Dir(real)))
	}
	if cfg, err := file.Read(context.Background(), filepath.Join(found[0], "pyvenv.cfg"), maxConfig); err == nil {
		for line := range strings.Lines(string(cfg)) {
			if name, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "home" {
				found = append(found, filepath.Dir(strings.TrimSpace(value)))
			}
		}
	}
	return slices.DeleteFunc(found, func(p string) bool { return p == "/" || p == "." })
}
