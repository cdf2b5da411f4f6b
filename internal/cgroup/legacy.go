package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// hierarchy is one of version 1, of which there is one for each controller, or for some.
type hierarchy struct {
	base string // the folder of the group of this process
	// controllers are those that groups are made for. It has none of them where it serves for
	// the end of groups alone.
	controllers []string
}

// legacySwap bounds memory and what was swapped out together, in version 1.
const legacySwap = "memory.memsw.limit_in_bytes"

// findLegacy looks for groups of version 1 with any of the wanted controllers. Processes can be
// in them beside groups, so that the host is not moved.
func findLegacy(o Options) (place, bool) {
	p := place{proc: o.Proc}
	// The first is that of processes, wanted or not: a group that may start no more can be ended.
	for _, c := range []string{PIDs, Memory, CPU} {
		wanted := slices.Contains(o.Want, c) && (c != Memory || !o.Whole)
		if !wanted && c != PIDs {
			continue
		}
		dir, ok := legacyGroup(o.Proc, "self", c)
		if !ok || writable(filepath.Join(dir, fileProcs)) != nil {
			continue
		}
		at := slices.IndexFunc(p.legacy, func(h hierarchy) bool { return h.base == dir })
		if at < 0 {
			at = len(p.legacy)
			p.legacy = append(p.legacy, hierarchy{base: dir})
		}
		if wanted {
			p.legacy[at].controllers = append(p.legacy[at].controllers, c)
			p.controllers = append(p.controllers, c)
		}
	}
	if len(p.controllers) == 0 {
		return place{}, false
	}
	p.base = p.legacy[0].base
	switch left := missing(o.Want, p.controllers); {
	case o.Whole && slices.Equal(left, []string{Memory}):
		p.lacking = "they are of version 1: a limit of memory holds for each process by itself"
	case len(left) > 0:
		p.lacking = fmt.Sprintf("there are control groups of version 1, with no controller %s that this process may use", strings.Join(left, " and "))
	}
	return p, true
}

// legacyGroup returns the folder of the group of a process, a number or "self", in the hierarchy of
// version 1 that has a controller.
func legacyGroup(proc, process, controller string) (string, bool) {
	b, err := os.ReadFile(filepath.Join(proc, process, "cgroup"))
	if err != nil {
		return "", false
	}
	path := ""
	for line := range strings.Lines(string(b)) { // "4:cpu,cpuacct:/a/b"
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		names, group, _ := strings.Cut(rest, ":")
		if slices.Contains(strings.Split(names, ","), controller) {
			path = group
		}
	}
	if path == "" || strings.HasPrefix(path, "/..") {
		return "", false
	}
	if b, err = os.ReadFile(filepath.Join(proc, "self", "mountinfo")); err != nil {
		return "", false
	}
	for line := range strings.Lines(string(b)) {
		_, back, _ := strings.Cut(line, " - ")
		const kind, options, all = 0, 2, 3 // "cgroup cgroup rw,cpu,cpuacct"
		f := strings.Fields(back)
		if len(f) < all || f[kind] != "cgroup" || !slices.Contains(strings.Split(f[options], ","), controller) {
			continue
		}
		if dir, ok := within(line, path, "cgroup"); ok {
			return dir, true
		}
	}
	return "", false
}

// limitLegacy writes the limits of a group of version 1.
func (t *Tree) limitLegacy(g *Group, l Limits) error {
	for at, h := range t.legacy {
		var all []setting
		for _, c := range h.controllers {
			switch {
			case c == Memory && l.Memory > 0:
				most := strconv.FormatInt(l.Memory, 10)
				all = append(all, setting{"memory.limit_in_bytes", most}, setting{legacySwap, most})
			case c == PIDs && l.Tasks > 0:
				all = append(all, setting{filePIDs, tasks(l.Tasks)})
			case c == CPU && l.Processors > 0:
				all = append(all, setting{"cpu.cfs_period_us", strconv.Itoa(period)}, setting{"cpu.cfs_quota_us", strconv.FormatInt(quota(l.Processors), 10)})
			}
		}
		if err := set(g.dirs[at], all); err != nil {
			return err
		}
	}
	return nil
}

// legacyUsage reads what a group of version 1 uses and has met. Each of its folders has some of it.
func (g *Group) legacyUsage() Usage {
	u := Usage{Memory: -1}
	for _, dir := range g.dirs {
		if b, err := os.ReadFile(filepath.Join(dir, "memory.usage_in_bytes")); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
				u.Memory = max(0, n-counter(dir, "memory.stat", "total_inactive_file"))
			}
		}
		u.Killed += counter(dir, "memory.oom_control", "oom_kill")
		u.Refused += counter(dir, "pids.events", "max")
	}
	return u
}
