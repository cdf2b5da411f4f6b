package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/internal/process"
)

// hostLeaf is the group that the host itself is moved to.
const hostLeaf = "coppice-host"

// Files of a group.
const (
	fileProcs       = "cgroup.procs"
	fileControllers = "cgroup.controllers"
	fileSubtree     = "cgroup.subtree_control"
	fileEvents      = "cgroup.events" // the root group has none
	fileKill        = "cgroup.kill"
	filePIDs        = "pids.max"
)

// place is where the groups of this process can be.
type place struct {
	base string
	// legacy are the hierarchies of version 1 that they are in, where version 2 has none of
	// what is wanted; base is the folder of the first.
	legacy []hierarchy
	// controllers are those of the wanted ones that can be had.
	controllers []string
	// lacking says why the others cannot, "" when all can.
	lacking string
	// move says that the host stands in base, and has to be moved to a leaf.
	move bool
	// proc is where procfs is.
	proc string
}

// find looks where groups can be, and changes nothing.
func find(o Options) (place, error) {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	p, err := findUnified(o)
	if err == nil || o.Base != "" || len(o.Want) == 0 {
		return p, err
	}
	if l, found := findLegacy(o); found {
		return l, nil
	}
	return p, err
}

// findUnified looks for groups of version 2.
func findUnified(o Options) (place, error) {
	p := place{base: o.Base, proc: o.Proc}
	if p.base == "" {
		own, err := ownGroup(p.proc)
		if err != nil {
			return p, err
		}
		p.base = own
		if filepath.Base(own) == hostLeaf {
			p.base = filepath.Dir(own)
		} else {
			p.move = true
		}
	}
	have, err := words(filepath.Join(p.base, fileControllers))
	if err != nil {
		return p, &UnusableError{Dir: p.base, Why: reason(err)}
	}
	left := missing(o.Want, have)
	p.controllers = missing(o.Want, left)
	if len(left) > 0 {
		p.lacking = fmt.Sprintf("%s has no controller %s: it is not passed on from above, or used by control groups of version 1", p.base, strings.Join(left, " and "))
	}
	if len(o.Want) > 0 && len(p.controllers) == 0 {
		return p, &UnusableError{Dir: p.base, Why: p.lacking}
	}
	for _, name := range []string{fileProcs, fileSubtree} {
		if err := writable(filepath.Join(p.base, name)); err != nil {
			return p, &UnusableError{Dir: p.base, Why: reason(err) + "; start the host with systemd-run --user --scope -p Delegate=yes, or as a service with Delegate=yes"}
		}
	}
	if _, err := os.Stat(filepath.Join(p.base, fileEvents)); errors.Is(err, fs.ErrNotExist) || len(p.controllers) == 0 {
		p.move = false // the root may hold processes beside groups, and so may one that gives nothing on
	}
	if p.move {
		if other := strangers(p.base); len(other) > 0 && !delegated(p.base) {
			return p, &UnusableError{Dir: p.base, Why: fmt.Sprintf("process %d, which this one has not started, is in it, too; start the host in a group of its own, with systemd-run --user --scope -p Delegate=yes", other[0])}
		}
	}
	return p, nil
}

// ownGroup returns the folder of the group of this process.
func ownGroup(proc string) (string, error) { return groupOf(proc, "self") }

// groupOf returns the folder of the group of a process, a number or "self", under
// the mounts of this one.
func groupOf(proc, process string) (string, error) {
	b, err := os.ReadFile(filepath.Join(proc, process, "cgroup"))
	if err != nil {
		return "", &UnusableError{Why: "this system has no control groups"}
	}
	path := ""
	for line := range strings.Lines(string(b)) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path = p
		}
	}
	if path == "" || strings.HasPrefix(path, "/..") {
		return "", &UnusableError{Why: "this process is in no group of version 2 that is visible here"}
	}
	b, err = os.ReadFile(filepath.Join(proc, "self", "mountinfo"))
	if err != nil {
		return "", &UnusableError{Why: "the mounts of this process cannot be read"}
	}
	for line := range strings.Lines(string(b)) {
		if dir, ok := within(line, path, "cgroup2"); ok {
			return dir, nil
		}
	}
	return "", &UnusableError{Why: "version 2 is not mounted here"}
}

// within returns the folder of a group when a line of mountinfo shows it, of a type of file
// system: "36 35 98:0 /root /mount/point options… - type source options".
func within(line, group, kind string) (string, bool) {
	front, back, ok := strings.Cut(line, " - ")
	f := strings.Fields(front)
	const atRoot, atPoint = 3, 4
	if !ok || len(f) <= atPoint || !strings.HasPrefix(back, kind+" ") {
		return "", false
	}
	root, point := unescape(f[atRoot]), unescape(f[atPoint])
	rel, err := filepath.Rel(root, group)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return filepath.Join(point, rel), true
}

// unescape undoes the octal escapes of mountinfo: "\040" is a blank.
func unescape(s string) string {
	var b strings.Builder
	for at := 0; at < len(s); at++ {
		const digits = 3
		if s[at] == '\\' && at+digits < len(s) {
			if n, err := strconv.ParseUint(s[at+1:at+1+digits], 8, 8); err == nil {
				b.WriteByte(byte(n))
				at += digits
				continue
			}
		}
		b.WriteByte(s[at])
	}
	return b.String()
}

// strangers returns the processes of a group that are neither this one nor
// started by it.
func strangers(dir string) []int {
	pids, err := members(dir)
	if err != nil {
		return nil
	}
	ours := []int{os.Getpid()}
	if self, err := process.Identify(os.Getpid()); err == nil {
		children, _ := process.Descendants(self)
		for _, c := range children {
			ours = append(ours, c.PID)
		}
	}
	return slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(ours, pid) })
}

// members returns the processes of a group, without those of groups below.
func members(dir string) ([]int, error) {
	texts, err := words(filepath.Join(dir, fileProcs))
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(texts))
	for _, t := range texts {
		if pid, err := strconv.Atoi(t); err == nil {
			pids = append(pids, pid) // 0 is a process of another pid namespace
		}
	}
	return pids, nil
}

func words(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(b)), nil
}

func writable(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// put writes a file of a group. It is there already.
func put(text, dir, name string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// reason is an error of a file without the words around it.
func reason(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Sprintf("%s: %v", filepath.Base(at.Path), at.Err)
	}
	return err.Error()
}
