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
	dir    string
	system system
}

// Dir returns its folder.
func (g *Group) Dir() string { return g.dir }

// Join returns a file that moves the process which writes "0" to it into the group,
// also one that could not open it itself. The caller closes it.
func (g *Group) Join() (*os.File, error) { return g.open(fileProcs, os.O_WRONLY) }

// Take moves a process into the group, by its number.
func (g *Group) Take(pid int) error {
	f, err := g.Join()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // the write has said what is to be said
	if _, err := f.WriteString(strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("move process %d to a control group: %w", pid, err)
	}
	return nil
}

// Open returns the folder of the group, which the system wants for starting a
// process in it. The caller closes it.
func (g *Group) Open() (*os.File, error) { return g.open(".", os.O_RDONLY) }

func (g *Group) open(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(g.dir, name), flag, 0)
	if err != nil {
		return nil, fmt.Errorf("open a control group: %w", err)
	}
	return f, nil
}

// Usage reads what the group uses and has met. What its controllers do not count is
// 0, and -1 for the memory.
func (g *Group) Usage() Usage {
	u := Usage{Memory: -1}
	if b, err := os.ReadFile(filepath.Join(g.dir, "memory.current")); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
			u.Memory = max(0, n-counter(g.dir, "memory.stat", "inactive_file"))
		}
	}
	u.Killed = counter(g.dir, "memory.events", "oom_kill")
	u.Refused = counter(g.dir, "pids.events", "max")
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
func (g *Group) Remove(ctx context.Context) error { return remove(ctx, g.dir, g.system) }

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
	// Linux before 5.14 has no such file.
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
