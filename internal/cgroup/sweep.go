package cgroup

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/internal/process"
)

// prefix begins the names of hosts' folders.
const prefix = "coppice-"

// hostName returns the name of this process's folder.
func hostName(proc string) (string, error) {
	id, err := process.Identify(os.Getpid())
	if err != nil {
		return "", fmt.Errorf("name the control groups of this host: %w", err)
	}
	return nameOf(id, namespace(proc)), nil
}

func nameOf(id process.Identity, ns string) string {
	return fmt.Sprintf("%s%d-%s-%s", prefix, id.PID, hash(id.Start), ns)
}

func hash(text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return strconv.FormatUint(h.Sum64(), 36)
}

// namespace returns the number of the pid namespace of this process: pids of
// another one say nothing here.
func namespace(proc string) string {
	link, err := os.Readlink(filepath.Join(proc, "self", "ns", "pid"))
	if err != nil {
		return "0"
	}
	return strings.Trim(strings.TrimPrefix(link, "pid:"), "[]")
}

// dead says whether a folder is that of a host in this pid namespace that has
// ended.
func dead(name, ns string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	const parts = 3
	f := strings.Split(rest, "-")
	if !ok || len(f) != parts || f[2] != ns {
		return false
	}
	pid, err := strconv.Atoi(f[0])
	if err != nil || pid <= 0 {
		return false
	}
	id, err := process.Identify(pid)
	if err != nil {
		return errors.Is(err, process.ErrNoProcess)
	}
	return hash(id.Start) != f[1]
}

// Leftovers returns the folders of hosts that have ended without removing them, in all
// hierarchies. Without control groups there are none.
func Leftovers(o Options) []string {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	o.Want = nil
	var bases []string
	if p, err := findUnified(o); err == nil {
		bases = append(bases, p.base)
	}
	if o.Base == "" {
		o.Want = []string{Memory, PIDs, CPU}
		p, _ := findLegacy(o) // without one there are no hierarchies
		for _, h := range p.legacy {
			bases = append(bases, h.base)
		}
	}
	ns := namespace(o.Proc)
	var left []string
	for _, base := range bases {
		for _, dir := range below(base) {
			if dead(filepath.Base(dir), ns) {
				left = append(left, dir)
			}
		}
	}
	return left
}

// Clean ends what is in leftovers and removes them, within ctx. It returns those
// that are gone.
func Clean(ctx context.Context, o Options) ([]string, error) {
	var done []string
	var failed error
	for _, dir := range Leftovers(o) {
		if err := remove(ctx, dir, o.does()); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		done = append(done, dir)
	}
	return done, failed
}
