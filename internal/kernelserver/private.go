package kernelserver

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pysrc"
)

//go:embed kernel.py
var kernelScript []byte

//go:embed kernel_gateway.py
var gatewayStart []byte

//go:embed server.py
var serverScript []byte

//go:embed late.py
var lateScript []byte

//go:embed room.py
var roomScript []byte

//go:embed forks.py
var forksScript []byte

//go:embed zygote.py
var zygoteScript []byte

const (
	// dirPattern names private directories. It is short, because the path of a
	// kernel's socket must be.
	dirPattern = "cpk-*"
	// maxBase is the longest path that a private directory can be made in. A
	// socket path has 107 bytes on Linux and 103 on macOS; 14 go to the name of
	// the private directory, 52 to /r/kernel-<uuid>-ipc-5.
	maxBase = 103 - 1 - 14 - 52
	// unowned is how long an empty directory may have no owner.
	unowned = time.Hour
)

// private is the directory of one gateway, closed to everyone else:
//
//	owner.json                who made it
//	kernel.py                 what a kernel runs
//	kernel_gateway.py         runs the Kernel Gateway
//	server.py                 runs Jupyter Server where there is no Kernel Gateway
//	late.py                   what both put off
//	room.py                   keeps room in kernels for the connections of both
//	forks.py                  makes kernels by fork; not there where they are spawned,
//	                          and so is the next
//	zygote.py                 runs what they are forked from
//	walled.py                 what both, and kernels, do behind walls, as walls.json says;
//	                          not there where there are none
//	h                         the socket of host calls; likewise
//	modules.json              what kernels are prepared with
//	modules.bin               the same, compiled by the first of them
//	r/                        connection files and sockets
//	d/kernels/python3/        the kernelspec
//	t/                        temporary files of the gateway
//	c/  i/  w/                configuration, IPython's files, an empty directory
type private string

// provisioner is the name by which Jupyter knows what starts the kernels; see forks.py.
const provisioner = "coppice-fork"

func (p private) join(elem ...string) string {
	return filepath.Join(append([]string{string(p)}, elem...)...)
}
func (p private) owner() string   { return p.join("owner.json") }
func (p private) script() string  { return p.join("kernel.py") }
func (p private) sockets() string { return p.join("r") }
func (p private) data() string    { return p.join("d") }
func (p private) spec() string    { return p.join("d", "kernels", "python3") }
func (p private) config() string  { return p.join("c") }
func (p private) ipython() string { return p.join("i") }
func (p private) scratch() string { return p.join("t") }
func (p private) empty() string   { return p.join("w") }
func (p private) calls() string   { return p.join("h") }

// within is the path of the socket of host calls in a kernel of the gateway's own, which makes it.
func (p private) within() string { return p.join("r", "h") }

// newPrivate makes the directory for a gateway.
func newPrivate(o Options) (private, error) {
	base, err := shortBase(o.TempDir)
	if err != nil {
		return "", err
	}
	sweep(base)
	dir, err := os.MkdirTemp(base, dirPattern) // with mode 0700
	if err != nil {
		return "", fmt.Errorf("make a private directory for the kernel gateway: %w", err)
	}
	p := private(dir)
	if err := p.fill(o); err != nil {
		_ = os.RemoveAll(dir) // the first error is the news
		return "", fmt.Errorf("make a private directory for the kernel gateway: %w", err)
	}
	return p, nil
}

// fill writes what the gateway reads. The owner goes first: without it, the directory
// of a host that was killed would never be removed.
func (p private) fill(o Options) error {
	self, _ := process.Identify(os.Getpid()) // unknown is never swept
	owner, err := json.Marshal(self)
	if err != nil {
		return err
	}
	kernel := map[string]any{
		"argv": []string{
			o.Runtime.Path, p.script(), "-f", "{connection_file}",
			// A history file that all kernels of a user share makes cells wait for
			// each other, up to seconds.
			"--HistoryManager.enabled=False",
		},
		"display_name": "Python 3",
		"language":     "python",
		"env":          o.kernelEnv(),
	}
	if o.forks() {
		kernel["metadata"] = map[string]any{"kernel_provisioner": map[string]any{"provisioner_name": provisioner}}
	}
	spec, err := json.MarshalIndent(kernel, "", "  ")
	if err != nil {
		return err
	}
	modules, err := pysrc.KernelModules()
	if err != nil {
		return err
	}
	for _, dir := range []string{p.sockets(), p.spec(), p.config(), p.ipython(), p.scratch(), p.empty()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	type content struct {
		path string
		data []byte
	}
	files := []content{{p.owner(), owner}, {p.script(), kernelScript}, {p.join("kernel_gateway.py"), gatewayStart}, {p.join("server.py"), serverScript}, {p.join("late.py"), lateScript}, {p.join("room.py"), roomScript}, {p.join("modules.json"), modules}, {filepath.Join(p.spec(), "kernel.json"), spec}}
	if o.forks() {
		files = append(files, content{p.join("forks.py"), forksScript}, content{p.join("zygote.py"), zygoteScript})
	}
	if o.walled() {
		told := walls{Listener: listening, Scopes: o.Rules.Scopes()}
		if o.Rules.Inside() {
			told.Calls = p.within()
		}
		text, err := json.Marshal(told)
		if err != nil {
			return err
		}
		files = append(files, content{p.join("walled.py"), walledScript}, content{p.join("walls.json"), text})
	}
	for _, f := range files {
		if err := os.WriteFile(f.path, f.data, 0o600); err != nil {
			return err
		}
	}
	return p.open(o.User)
}

// open opens the directory to the user that the gateway runs as: its own are the folders that it
// writes, and what the host has written it may read.
func (p private) open(u *process.User) error {
	if u == nil {
		return nil
	}
	const folder, read = 0o755, 0o644 // in a directory that no one can list
	own := []string{p.sockets(), p.ipython(), p.scratch(), p.empty()}
	err := filepath.WalkDir(string(p), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == string(p):
			return os.Chmod(path, 0o711)
		case slices.Contains(own, path):
			return os.Chown(path, u.UID, u.GID)
		case d.IsDir():
			return os.Chmod(path, folder)
		default:
			return os.Chmod(path, read)
		}
	})
	if err != nil {
		return fmt.Errorf("open it to user %d: %w", u.UID, err)
	}
	return nil
}

func (p private) remove() error {
	if err := os.RemoveAll(string(p)); err != nil {
		return fmt.Errorf("remove the private directory of the kernel gateway: %w", err)
	}
	return nil
}

// shortBase chooses where private directories are made.
func shortBase(asked string) (string, error) {
	if asked != "" {
		if len(asked) > maxBase && runtime.GOOS != "windows" {
			return "", fmt.Errorf("the directory %s is too long for the sockets of kernels: at most %d bytes", asked, maxBase)
		}
		return asked, nil
	}
	if base := os.TempDir(); len(base) <= maxBase || runtime.GOOS == "windows" {
		return base, nil
	}
	return "/tmp", nil
}

// Sweep removes the private directories of gateways whose hosts were killed, and in
// which nothing runs. What cannot be removed stays. Any goroutine may call it.
func Sweep() {
	if base, err := shortBase(""); err == nil {
		sweep(base)
	}
}

// sweep removes the private directories whose hosts were killed. It is done on
// the way and may fail for any of them: somebody else's are not removable.
func sweep(base string) {
	dirs, err := filepath.Glob(filepath.Join(base, dirPattern))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !isOurs(info) {
			continue
		}
		data, err := readNote(private(dir).owner())
		if err != nil {
			if time.Since(info.ModTime()) > unowned {
				_ = os.Remove(dir) // an empty one: its maker was killed before it could write who it is
			}
			continue
		}
		var owner process.Identity
		if json.Unmarshal(data, &owner) != nil || owner.Start == "" || !process.Ended(owner) {
			continue
		}
		// A kernel that is left keeps its directory: it proves whose kernel it is.
		if gateway, kernels, err := private(dir).processes(); err == nil && len(gateway)+len(kernels) == 0 {
			_ = os.RemoveAll(dir)
		}
	}
}
