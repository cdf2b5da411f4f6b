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
	"syscall"
	"time"

	"github.com/coppice-run/coppice/internal/process"
)

// errBusy is what the system says of a group that still has processes.
var errBusy error = syscall.EBUSY

// Group is the group of one session.
type Group struct {
	dirs   []string // one, or with legacy one in each hierarchy
	legacy bool     // it is of version 1
	system system
}

// Dir returns its folder, that in the first of its hierarchies.
func (g *Group) Dir() string { return g.dirs[0] }

// Legacy reports whether it is of version 1: no process can begin in it, all enter it.
func (g *Group) Legacy() bool { return g.legacy }

// Join returns files that move the process which writes "0" to each of them into the
// group, also one that could not open them itself. The caller closes them.
func (g *Group) Join() ([]*os.File, error) { return g.open(fileProcs, os.O_WRONLY) }

// Take moves a process into the group, by its number.
func (g *Group) Take(pid int) error {
	files, err := g.Join()
	if err != nil {
		return err
	}
	for _, f := range files {
		_, failed := f.WriteString(strconv.Itoa(pid))
		err = errors.Join(err, failed)
		_ = f.Close() // the write has said what is to be said
	}
	if err != nil {
		return fmt.Errorf("move process %d to a control group: %w", pid, err)
	}
	return nil
}

// Open returns the folders of the group, which the system wants for starting a
// process in it. The caller closes them.
func (g *Group) Open() ([]*os.File, error) { return g.open(".", os.O_RDONLY) }

func (g *Group) open(name string, flag int) ([]*os.File, error) {
	var files []*os.File
	for _, dir := range g.dirs {
		f, err := os.OpenFile(filepath.Join(dir, name), flag, 0)
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil, fmt.Errorf("open a control group: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

// Members returns the processes of the group, without those of groups below it.
func (g *Group) Members() ([]int, error) {
	pids, err := members(g.Dir())
	if err != nil {
		return nil, fmt.Errorf("list the processes of a control group: %w", err)
	}
	return pids, nil
}

// End ends the processes of the group, within ctx. The group stays.
func (g *Group) End(ctx context.Context) {
	for _, dir := range g.dirs {
		killAll(ctx, dir)
	}
}

// EndSome ends those processes of the group that among returns of their numbers, until it returns
// none, within ctx. Where the group counts its processes, none can start in it meanwhile.
func (g *Group) EndSome(ctx context.Context, among func(pids []int) []process.Identity) {
	for _, dir := range g.dirs {
		if restore, ok := closeGroup(dir); ok {
			defer restore()
		}
	}
	const quiet = 2 // one that starts another and ends, while they are listed, is in neither place
	for none := 0; none < quiet && ctx.Err() == nil; none++ {
		pids, err := g.Members()
		if err != nil {
			return // it is gone, and all that was in it
		}
		if ids := among(pids); len(ids) > 0 {
			none = -1
			process.KillAll(ctx, ids)
		}
	}
}

// closeGroup has nothing start in a group until the function returned is called. False: this
// group does not count its processes.
func closeGroup(dir string) (func(), bool) {
	most, err := os.ReadFile(filepath.Join(dir, filePIDs))
	if err != nil || put("0", dir, filePIDs) != nil {
		return nil, false
	}
	return func() { _ = put(string(most), dir, filePIDs) }, true // of a group that stays
}

// Usage reads what the group uses and has met. What its controllers do not count is
// 0, and -1 for the memory.
func (g *Group) Usage() Usage {
	if g.legacy {
		return g.legacyUsage()
	}
	u := Usage{Memory: -1}
	if b, err := os.ReadFile(filepath.Join(g.Dir(), "memory.current")); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
			u.Memory = max(0, n-counter(g.Dir(), "memory.stat", "inactive_file"))
		}
	}
	u.Killed = counter(g.Dir(), "memory.events", "oom_kill")
	u.Refused = counter(g.Dir(), "pids.events", "max")
	return u
}

// counter reads one line of a file of lines like "oom_kill 3"; 0 when it has none.
func counter(dir, file, name string) int64 {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// Remove ends all processes of the group and of groups that they have made below
// it, and removes it. It waits until they are gone, within ctx. A group that is
// not there is no error.
func (g *Group) Remove(ctx context.Context) error {
	var err error
	for _, dir := range g.dirs {
		err = errors.Join(err, remove(ctx, dir, g.system))
	}
	return err
}

func remove(ctx context.Context, dir string, s system) error {
	const least, most = time.Millisecond, 50 * time.Millisecond
	for wait := least; ; wait = min(2*wait, most) {
		err := rmdirAll(dir, s)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !errors.Is(err, errBusy) {
			return fmt.Errorf("remove the control group %s: %w", dir, err)
		}
		killAll(ctx, dir)
		pause(ctx, wait)
	}
}

// rmdirAll removes a group and those below it, which must be empty.
func rmdirAll(dir string, s system) error {
	err := s.rmdir(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range below(dir) {
		if err := rmdirAll(d, s); err != nil {
			return err
		}
	}
	err = s.rmdir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// killAll ends the processes of a group and of those below it.
func killAll(ctx context.Context, dir string) {
	if put("1", dir, fileKill) == nil {
		return
	}
	// Linux before 5.14 has no such file, nor has version 1. What may start no more can
	// be ended one after the other.
	if restore, ok := closeGroup(dir); ok {
		defer restore()
	}
	pids, _ := members(dir)
	ids := make([]process.Identity, 0, len(pids))
	for _, pid := range pids {
		if id, err := process.Identify(pid); err == nil && pid != os.Getpid() {
			ids = append(ids, id)
		}
	}
	process.KillAll(ctx, ids)
	for _, d := range below(dir) {
		killAll(ctx, d)
	}
}

// gone says that a process has ended in the meantime.
func gone(err error) bool { return errors.Is(err, syscall.ESRCH) }

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
