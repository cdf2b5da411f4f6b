package cgroup

import (
	"fmt"
)

// Controllers of a group, for [Options.Want].
const (
	Memory = "memory"
	PIDs   = "pids"
	CPU    = "cpu"
)

// Options says where groups are made. The zero value of a field is its default.
type Options struct {
	// Want names the controllers that are of use. nil: none, for groups that only
	// keep processes together.
	Want []string
	// Whole leaves out what would end single processes of a group that has met its limit:
	// the memory of version 1.
	Whole bool
	// Base is the folder of a group under which those of the host are made; this
	// process is not moved then. "": the group of this process.
	Base string
	// Proc is where procfs is. "": /proc.
	Proc string
	// system replaces what a real cgroupfs does besides keeping files. nil: it does.
	system *system
}

// system is what cgroupfs does when folders come and go.
type system struct {
	mkdir, rmdir func(path string) error
}

// Limits bound a group. 0: no limit.
type Limits struct {
	// Memory is how much all processes of the group may use together, in bytes, of
	// which nothing is swapped out. What goes beyond ends all of them; in a group of
	// version 1 the biggest, and the others are left to [Group.End].
	Memory int64
	// Tasks is how many processes and threads there may be.
	Tasks int
	// Processors is how many processors the group may keep busy.
	Processors float64
}

// Usage is what a group uses and has met.
type Usage struct {
	// Memory is what is in use in bytes, without files that were read and can be
	// dropped. -1: not known.
	Memory int64
	// Killed counts the processes that were ended because Limits.Memory was met.
	Killed int64
	// Refused counts the processes and threads that Limits.Tasks refused.
	Refused int64
}

// UnusableError says why control groups cannot be used.
type UnusableError struct {
	// Dir is the folder of the group in question, "" without one.
	Dir string
	// Why is the reason, and what helps, in words.
	Why string
}

// Error says both.
func (e *UnusableError) Error() string {
	if e.Dir == "" {
		return "there are no control groups: " + e.Why
	}
	return fmt.Sprintf("the control group %s cannot be used: %s", e.Dir, e.Why)
}

// missing returns those of want that are not in have.
func missing(want, have []string) []string {
	var left []string
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || w == h
		}
		if !found {
			left = append(left, w)
		}
	}
	return left
}
