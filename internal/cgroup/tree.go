package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// mode is that of the folders of groups.
const mode = 0o700

// last is the number of the last group of this process. Several trees of one
// process share a folder.
var last atomic.Uint64

// Tree is where the groups of this host's sessions are.
type Tree struct {
	base        string
	dirs        []string // of this host's groups, one, or with legacy one in each hierarchy
	legacy      []hierarchy
	controllers []string
	lacking     string
	system      system
}

// Check says whether [Open] would do, and changes nothing. It returns the folder
// under which groups would be made, the wanted controllers that they would have,
// and why they would lack the others. The error is an *[UnusableError].
func Check(o Options) (base string, controllers []string, lacking string, err error) {
	p, err := find(o)
	return p.base, p.controllers, p.lacking, err
}

// Open prepares the group of this process for groups below it: the process moves
// to a leaf, if it has to, and what killed hosts left is removed, within ctx. A tree
// that lacks some of the wanted controllers is opened, see [Tree.Lacking]; without
// any the error is an *[UnusableError].
func Open(ctx context.Context, o Options) (*Tree, error) {
	p, err := find(o)
	if err != nil {
		return nil, err
	}
	name, err := hostName(p.proc)
	if err != nil {
		return nil, &UnusableError{Dir: p.base, Why: err.Error()}
	}
	t := &Tree{base: p.base, legacy: p.legacy, controllers: p.controllers, lacking: p.lacking, system: o.does()}
	for _, h := range p.legacy {
		t.dirs = append(t.dirs, filepath.Join(h.base, name))
	}
	if len(p.legacy) == 0 {
		t.dirs = []string{filepath.Join(p.base, name)}
	}
	if p.move {
		if err := t.moveHost(); err != nil {
			return nil, &UnusableError{Dir: p.base, Why: "this process cannot be moved to a group below it: " + reason(err)}
		}
	}
	if err := t.giveOn(p.base); err != nil {
		return nil, &UnusableError{Dir: p.base, Why: "its controllers cannot be passed on: " + reason(err)}
	}
	if err := t.prepare(); err != nil {
		return nil, &UnusableError{Dir: p.base, Why: reason(err)}
	}
	_, _ = Clean(ctx, o) // what stays is found again
	return t, nil
}

// does returns what cgroupfs does.
func (o Options) does() system {
	if o.system != nil {
		return *o.system
	}
	return system{mkdir: func(path string) error { return os.Mkdir(path, mode) }, rmdir: os.Remove}
}

// moveHost takes all processes of base to the leaf of hosts. They may start others
// meanwhile.
func (t *Tree) moveHost() error {
	leaf := filepath.Join(t.base, hostLeaf)
	if err := t.system.mkdir(leaf); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	const rounds = 20
	for range rounds {
		pids, err := members(t.base)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := put(strconv.Itoa(pid), leaf, fileProcs); err != nil && !gone(err) {
				return err
			}
		}
	}
	return errors.New("processes come faster than they can be moved")
}

// giveOn gives the controllers to the groups below a group. In version 1 they have them.
func (t *Tree) giveOn(dir string) error {
	if len(t.legacy) > 0 {
		return nil
	}
	have, err := words(filepath.Join(dir, fileSubtree))
	if err != nil {
		return err
	}
	more := missing(t.controllers, have)
	if len(more) == 0 {
		return nil
	}
	return put("+"+strings.Join(more, " +"), dir, fileSubtree)
}

// prepare makes the folders of this host.
func (t *Tree) prepare() error {
	for _, dir := range t.dirs {
		if err := t.system.mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := t.giveOn(dir); err != nil {
			return err
		}
	}
	return nil
}

// Controllers returns the wanted controllers that the groups have.
func (t *Tree) Controllers() []string { return t.controllers }

// Lacking says why they have not all that were wanted, "" when they have.
func (t *Tree) Lacking() string { return t.lacking }

// Dir returns the folder of this host's groups, that in the first of their hierarchies.
func (t *Tree) Dir() string { return t.dirs[0] }

// New makes an empty group. Limits whose controller the tree lacks are left out.
func (t *Tree) New(l Limits) (*Group, error) {
	g, number := &Group{legacy: len(t.legacy) > 0, system: t.system}, strconv.FormatUint(last.Add(1), 10)
	var err error
	for _, dir := range t.dirs {
		if err = t.make(filepath.Join(dir, number)); err != nil {
			break
		}
		g.dirs = append(g.dirs, filepath.Join(dir, number))
	}
	if err == nil {
		err = t.limit(g, l)
	}
	if err != nil {
		for _, dir := range g.dirs {
			_ = t.system.rmdir(dir)
		}
		return nil, fmt.Errorf("make a control group in %s: %w", t.Dir(), err)
	}
	return g, nil
}

// make makes the folder of a group.
func (t *Tree) make(dir string) error {
	err := t.system.mkdir(dir)
	for tries := 0; errors.Is(err, fs.ErrNotExist) && tries < 3; tries++ {
		// The other host of this process that made the folder above has just removed it.
		if err = t.prepare(); err == nil {
			err = t.system.mkdir(dir)
		}
	}
	return err
}

// limit writes the limits of a group that the tree has controllers for.
func (t *Tree) limit(g *Group, l Limits) error {
	if len(t.legacy) > 0 {
		return t.limitLegacy(g, l)
	}
	var all []setting
	for _, c := range t.controllers {
		switch {
		case c == Memory && l.Memory > 0:
			all = append(all, setting{"memory.max", strconv.FormatInt(l.Memory, 10)}, setting{"memory.swap.max", "0"}, setting{"memory.oom.group", "1"})
		case c == PIDs && l.Tasks > 0:
			all = append(all, setting{filePIDs, tasks(l.Tasks)})
		case c == CPU && l.Processors > 0:
			all = append(all, setting{"cpu.max", fmt.Sprintf("%d %d", quota(l.Processors), period)})
		}
	}
	return set(g.Dir(), all)
}

// setting is what is written to a file of a group.
type setting struct{ name, value string }

// set writes settings of a group.
func set(dir string, all []setting) error {
	for _, s := range all {
		err := put(s.value, dir, s.name)
		if errors.Is(err, fs.ErrNotExist) && (s.name == "memory.swap.max" || s.name == legacySwap) {
			continue // this system has no swap, or does not count it
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// period is that in which processors are given out, in microseconds.
const period = 100_000

// quota is what a group may use of so many processors in a period, in microseconds. The
// kernel refuses less than a millisecond, and from 2^44 on.
func quota(processors float64) int64 {
	const least, most = 1000, 1 << 43
	return int64(max(least, min(most, processors*period)))
}

// tasks is how many processes a group may have. The kernel refuses more than there can be.
func tasks(n int) string {
	const most = 1 << 22 // PID_MAX_LIMIT
	return strconv.Itoa(min(n, most))
}

// Close removes what is left of this host's groups, within ctx. Another tree of
// this process may have groups in the folder: they stay.
func (t *Tree) Close(ctx context.Context) error {
	var failed error
	for _, dir := range t.dirs {
		err := t.system.rmdir(dir)
		for errors.Is(err, errBusy) && ctx.Err() == nil && len(below(dir)) == 0 {
			pause(ctx, time.Millisecond)
			err = t.system.rmdir(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && len(below(dir)) == 0 {
			failed = errors.Join(failed, fmt.Errorf("remove the control group %s: %w", dir, err))
		}
	}
	return failed
}

// below returns the groups in a group.
func below(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	return dirs
}
