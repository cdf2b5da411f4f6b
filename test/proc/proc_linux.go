package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// WithEnv returns the processes that were started with name=value in their
// environment and are not zombies. Children inherit it, also when they are
// adopted by another parent, so a value that is only ours finds them all.
func WithEnv(name, value string) []Process {
	want := []byte(name + "=" + value)
	var found []Process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil {
			continue // gone, or not ours
		}
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(kv, want) {
				if p, ok := read(pid); ok {
					found = append(found, p)
				}
				break
			}
		}
	}
	return found
}

// read returns a process that is not a zombie.
func read(pid int) (Process, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Process{}, false
	}
	// The second field is the name in parentheses and may hold anything.
	_, rest, ok := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return Process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	cmd, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	return Process{PID: pid, Parent: parent, Command: string(bytes.ReplaceAll(cmd, []byte{0}, []byte{' '}))}, true
}

// Below returns the processes that descend from one, and are not zombies.
func Below(pid int) []Process {
	all := map[int]Process{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if id, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			if p, ok := read(id); ok {
				all[id] = p
			}
		}
	}
	var found []Process
	for _, p := range all {
		for at, ok := p, true; ok; at, ok = all[at.Parent] {
			if at.Parent == pid {
				found = append(found, p)
				break
			}
		}
	}
	return found
}

// Alive reports whether the process runs: a zombie does not.
func Alive(pid int) bool {
	_, ok := read(pid)
	return ok
}

// WithArgument returns the processes that have an argument, and are not zombies:
// whatever became of their environment.
func WithArgument(argument string) []Process {
	var found []Process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue // gone
		}
		for arg := range bytes.SplitSeq(line, []byte{0}) {
			if string(arg) == argument {
				if p, ok := read(pid); ok {
					found = append(found, p)
				}
				break
			}
		}
	}
	return found
}
