package sandbox

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/net/bpf"
)

// bubblewrap finds the program and sees whether it may make namespaces here.
func bubblewrap() (string, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "", fmt.Errorf("%w: bubblewrap is not installed (the program bwrap)", ErrUnavailable)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if out, err := exec.Command(path, "--ro-bind", "/", "/", "--unshare-net", "--unshare-ipc", "true").CombinedOutput(); err != nil { //nolint:noctx // it ends within milliseconds
		return "", fmt.Errorf("%w: bubblewrap cannot make namespaces here: %w: %s", ErrUnavailable, err, out)
	}
	return path, nil
}

// Wrap returns the command that runs a program under these rules: with bubblewrap, that
// one, which has one file more, the filter; with gVisor, the one that makes a sandbox for
// it; else the program itself. done, which is never nil, is called when the command has
// been started, or will not be.
func (r Rules) Wrap(c Command) (wrapped Command, done func(), err error) {
	switch {
	case r.Level == GVisor:
		wrapped, err = r.inGVisor(c)
		return wrapped, func() {}, err
	case r.Level != Bubblewrap:
		return c, func() {}, nil
	}
	bwrap, err := bubblewrap()
	if err != nil {
		return c, func() {}, err
	}
	raw, err := r.filter()
	if err != nil {
		return c, func() {}, err
	}
	filter, err := filterFile(raw)
	if err != nil {
		return c, func() {}, err
	}
	const first = 3
	args := append(r.bubblewrapArgs(cmp.Or(c.Dir, "/")), "--seccomp", strconv.Itoa(first+len(c.Files)), "--", c.Path)
	return Command{
		Path: bwrap, Args: append(args, c.Args...),
		Files: append(append(make([]*os.File, 0, len(c.Files)+1), c.Files...), filter),
	}, func() { _ = filter.Close() }, nil
}

// filterFile returns a pipe that a filter is read from, which has room for any: it has
// at most 4096 instructions.
func filterFile(raw []bpf.RawInstruction) (*os.File, error) {
	var form []byte
	for _, in := range raw {
		form = binary.NativeEndian.AppendUint16(form, in.Op)
		form = append(form, in.Jt, in.Jf)
		form = binary.NativeEndian.AppendUint32(form, in.K)
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("hand over the filter: %w", err)
	}
	_, err = to.Write(form)
	if err != nil {
		_ = from.Close()
		_ = to.Close()
		return nil, fmt.Errorf("hand over the filter: %w", err)
	}
	return from, to.Close()
}

func (r Rules) bubblewrapArgs(dir string) []string {
	args := []string{"--cap-drop", "ALL", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--dev", "/dev", "--perms", "1777", "--tmpfs", shared}
	if r.kept() != 0 {
		args = append(args, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_KILL")
	}
	if !r.Network {
		args = append(args, "--unshare-net")
	}
	if r.Users { // who pass through the folders above theirs, which bubblewrap makes for root alone
		for _, p := range r.above() {
			args = append(args, "--perms", "0711", "--dir", p)
		}
	}
	guards := r.guards()
	for _, p := range guards {
		if _, err := os.Stat(p); err == nil {
			args = append(args, "--ro-bind", p, p)
			args = append(args, cover(surveyed.of(p))...)
		}
	}
	for _, p := range r.readable() {
		if !slices.Contains(guards, p) { // behind those: what is named in one is open
			args = append(args, "--ro-bind", p, p)
		}
	}
	for _, p := range r.Write {
		args = append(args, "--bind", p, p)
	}
	return append(args, "--chdir", dir)
}

// cover returns what hides the parts of a folder of the system that are closed to others.
func cover(s survey) []string {
	var args []string
	for _, p := range s.closed {
		if info, err := os.Lstat(p); err == nil && info.IsDir() {
			args = append(args, "--tmpfs", p, "--remount-ro", p)
		} else if err == nil {
			args = append(args, "--ro-bind", "/dev/null", p)
		}
	}
	return args
}

// above returns the folders above those that may be read or written, the outer ones
// first.
func (r Rules) above() []string {
	var all []string
	for _, p := range append(r.readable(), r.Write...) {
		for dir := filepath.Dir(filepath.Clean(p)); dir != "/"; dir = filepath.Dir(dir) {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
