package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/internal/file/temp"
)

// runsc is the program of gVisor, and how to get it.
const (
	runsc    = "runsc"
	getRunsc = "install the package runsc (Debian, Ubuntu), or see gvisor.dev/docs/user_guide/install, so that it is on PATH"
)

// trials are the programs that were tried, by their paths: a trial makes a sandbox.
var trials sync.Map // of func() trial

// trial is what came of one: err says that it makes no sandbox, and flaw what does not work
// in one.
type trial struct{ err, flaw error }

// flawed is the exit code of a trial in which files could not be listed.
const flawed = 9

// gvisor finds the program and sees whether it can make a sandbox here.
func gvisor() (string, error) {
	path, err := exec.LookPath(runsc)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("%w: gVisor is not installed (the program runsc): %s", ErrUnavailable, getRunsc)
	}
	try, _ := trials.LoadOrStore(path, sync.OnceValue(func() trial { return tryGVisor(path) }))
	return path, try.(func() trial)().err
}

// lacksOfGVisor says why a host that does not ask for it by name does not get a sandbox of
// the program that is here, though it makes one. nil: it does.
func lacksOfGVisor() error {
	path, err := gvisor()
	if err != nil {
		return err
	}
	try, _ := trials.Load(path)
	return try.(func() trial)().flaw
}

// tryGVisor makes a sandbox in which files are listed.
func tryGVisor(path string) (t trial) {
	defer func() {
		if t.err != nil && !errors.Is(t.err, ErrUnavailable) {
			t.err = fmt.Errorf("%w: try gVisor: %w", ErrUnavailable, t.err)
		}
	}()
	scratch, err := os.MkdirTemp("", "coppice-trial-")
	if err != nil {
		return trial{err: err}
	}
	defer func() { t.err = errors.Join(t.err, os.RemoveAll(scratch)) }()
	shell, err := exec.LookPath("sh")
	if err != nil {
		return trial{err: err}
	}
	c, err := Rules{Level: GVisor, Scratch: scratch}.bundle(path, Command{Path: shell, Args: []string{"-c", fmt.Sprintf("ls -l / >/dev/null || exit %d", flawed)}})
	if err != nil {
		return trial{err: err}
	}
	cmd := exec.Command(c.Path, c.Args...) //nolint:noctx // it ends by itself, and a busy machine may take long
	cmd.Env = c.Env
	out, err := cmd.CombinedOutput()
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() == flawed {
		return trial{flaw: fmt.Errorf("programs cannot list files in the gVisor that is here (%s): take a newer one", path)}
	}
	if err != nil {
		return trial{err: fmt.Errorf("%w: gVisor cannot make a sandbox here: %w: %s", ErrUnavailable, err, bytes.TrimSpace(out))}
	}
	return trial{}
}

// inGVisor returns the command that runs a program in a sandbox of its own.
func (r Rules) inGVisor(c Command) (Command, error) {
	path, err := gvisor()
	if err != nil {
		return c, err
	}
	return r.bundle(path, c)
}

// bundle writes down what a sandbox is to be like, and returns the command that makes it.
// Its folder stays as long as Scratch does: it is where the sandbox has its mounts.
func (r Rules) bundle(path string, c Command) (Command, error) {
	if len(c.Files) > 0 {
		return c, errors.New("a sandbox of gVisor takes no descriptors but the standard ones")
	}
	if r.Scratch == "" {
		return c, errors.New("a sandbox of gVisor needs a folder for what it keeps")
	}
	name := rand.Text()
	dir := filepath.Join(r.Scratch, name)
	root := filepath.Join(dir, "root")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return c, fmt.Errorf("make the folder of a sandbox: %w", err)
	}
	nothing := filepath.Join(dir, "nothing") // what stands in place of files that are closed
	if err := os.WriteFile(nothing, nil, 0); err != nil {
		return c, fmt.Errorf("make the folder of a sandbox: %w", err)
	}
	mounts := r.mounts(nothing)
	for _, m := range mounts {
		if err := m.place(root); err != nil {
			return c, fmt.Errorf("make room for %s in a sandbox: %w", m.Destination, err)
		}
	}
	text, err := json.Marshal(r.spec(c, root, mounts))
	if err != nil {
		return c, fmt.Errorf("describe a sandbox: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
		return c, fmt.Errorf("describe a sandbox: %w", err)
	}
	network := "none"
	if r.Network {
		network = "host"
	}
	args := []string{"--root", filepath.Join(r.Scratch, "state"), "--network=" + network, "--ignore-cgroups"}
	if os.Geteuid() != 0 {
		args = append(args, "--rootless")
	}
	signal := func(ctx context.Context, number int) error {
		words := append(slices.Clone(args), "kill", "-all", "coppice-"+name, strconv.Itoa(number))
		if out, err := exec.CommandContext(ctx, path, words...).CombinedOutput(); err != nil {
			return fmt.Errorf("send signal %d into a sandbox: %w: %s", number, err, bytes.TrimSpace(out))
		}
		return nil
	}
	return Command{
		Path: path, Args: append(slices.Clone(args), "run", "-bundle", dir, "coppice-"+name), Signal: signal,
		Over: func() { _ = temp.Remove(dir) },
		// The program has its environment from the description: runsc gets none of it.
		Env: []string{"PATH=" + os.Getenv("PATH")},
	}, nil
}

// Count says how many processes there are in a sandbox, by the command that runs it (its program
// and its arguments, as the system tells them). What is in it has no say in that.
func Count(ctx context.Context, command []string) (int, error) {
	run := slices.Index(command, "run")
	if run < 1 || len(command) < run+2 {
		return 0, errors.New("count the processes of a sandbox: the command does not run one")
	}
	words := append(slices.Clone(command[1:run]), "ps", "-format=json", command[len(command)-1])
	cmd := exec.CommandContext(ctx, command[0], words...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("count the processes of a sandbox: %w", err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(out, &all); err != nil {
		return 0, fmt.Errorf("count the processes of a sandbox: %w", err)
	}
	return len(all), nil
}

// Parts of the description of a sandbox, as the Open Container Initiative has them.
type (
	ociSpec struct {
		Version  string     `json:"ociVersion"`
		Process  ociProcess `json:"process"`
		Root     ociRoot    `json:"root"`
		Hostname string     `json:"hostname"`
		Mounts   []ociMount `json:"mounts"`
		Linux    ociLinux   `json:"linux"`
	}
	ociProcess struct {
		Terminal     bool        `json:"terminal"`
		User         struct{}    `json:"user"` // 0, the owner of what this user owns
		Args         []string    `json:"args"`
		Env          []string    `json:"env"`
		Cwd          string      `json:"cwd"`
		Capabilities struct{}    `json:"capabilities"` // none
		Limits       []ociRlimit `json:"rlimits,omitempty"`
		None         bool        `json:"noNewPrivileges"`
	}
	ociRlimit struct {
		Type string `json:"type"`
		Soft uint64 `json:"soft"`
		Hard uint64 `json:"hard"`
	}
	ociRoot struct {
		Path     string `json:"path"`
		Readonly bool   `json:"readonly"`
	}
	ociMount struct {
		Destination string   `json:"destination"`
		Type        string   `json:"type"`
		Source      string   `json:"source"`
		Options     []string `json:"options,omitempty"`
	}
	ociLinux struct {
		Namespaces []ociNamespace `json:"namespaces"`
	}
	ociNamespace struct {
		Type string `json:"type"`
	}
)

func (r Rules) spec(c Command, root string, mounts []ociMount) ociSpec {
	spec := ociSpec{
		Version: "1.0.2", Hostname: "sandbox", Mounts: mounts, Root: ociRoot{root, true},
		Process: ociProcess{Terminal: c.Terminal, Args: append([]string{c.Path}, c.Args...), Env: c.Env, Cwd: cmp.Or(c.Dir, "/"), None: true},
	}
	for _, l := range []struct {
		name string
		most uint64
	}{{"RLIMIT_AS", c.Bounds.AddressSpace}, {"RLIMIT_NOFILE", c.Bounds.Files}, {"RLIMIT_FSIZE", c.Bounds.FileSize}} {
		if l.most > 0 {
			spec.Process.Limits = append(spec.Process.Limits, ociRlimit{l.name, l.most, l.most})
		}
	}
	for _, kind := range []string{"pid", "ipc", "uts", "mount", "network"} {
		if kind != "network" || !r.Network {
			spec.Linux.Namespaces = append(spec.Linux.Namespaces, ociNamespace{kind})
		}
	}
	return spec
}

// mounts returns what a sandbox has of the host's files, the outer folders first, and file
// systems of its own. No place has two: runsc says nothing of which of them would be seen.
func (r Rules) mounts(nothing string) []ociMount {
	own := func(at, kind string, options ...string) ociMount { return ociMount{at, kind, kind, options} }
	bind := func(at, from, access string) ociMount { return ociMount{at, "bind", from, []string{"rbind", access}} }
	all := []ociMount{own("/proc", "proc"), own("/sys", "sysfs", "ro"), own("/dev", "tmpfs"), own(shared, "tmpfs", "mode=1777")}
	guards := r.guards()
	var files []ociMount
	covered := func(path string) bool {
		return slices.ContainsFunc(files, func(m ociMount) bool { return within(path, m.Destination) && m.Type == "bind" })
	}
	var write []string
	for _, p := range r.Write {
		write = append(write, filepath.Clean(p))
	}
	slices.Sort(write)
	write = slices.Compact(write)
	changes := func(path string) bool {
		return slices.ContainsFunc(write, func(w string) bool { return within(path, w) })
	}
	for _, p := range r.readable() { // sorted: what lies in another comes behind it
		if within(p, "/proc") || within(p, "/sys") || within(p, "/dev") || covered(p) || changes(p) {
			continue
		}
		files = append(files, bind(p, p, "ro"))
		if slices.Contains(guards, p) {
			for _, c := range surveyed.of(p).closed {
				if info, err := os.Lstat(c); err == nil && info.IsDir() {
					files = append(files, own(c, "tmpfs", "ro"))
				} else if err == nil {
					files = append(files, bind(c, nothing, "ro"))
				}
			}
		}
	}
	hidden := func(path string) bool {
		return slices.ContainsFunc(files, func(m ociMount) bool { return m.Type != "bind" && within(path, m.Destination) })
	}
	for _, p := range r.readable() { // what is named in a closed folder is open
		if hidden(p) && !changes(p) {
			files = append(files, bind(p, p, "ro"))
		}
	}
	for _, p := range write {
		files = append(files, bind(p, p, "rw"))
	}
	return append(all, files...)
}

// within reports whether a path is a folder, or lies in it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// place makes the place of a mount, where it is not in another one.
func (m ociMount) place(root string) error {
	at := filepath.Join(root, m.Destination)
	info, err := os.Stat(m.Source)
	if err != nil || m.Type != "bind" || info.IsDir() {
		return os.MkdirAll(at, 0o755) //nolint:gosec // what is below is for all to see
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // as above
	if err != nil {
		return err
	}
	return f.Close()
}
