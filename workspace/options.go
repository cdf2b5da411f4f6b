package workspace

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice/actors/kernel"
)

// Options make a workspace. The zero value of each field is its default.
type Options struct {
	// Folder is where the sessions and processes of the workspace begin, and what Files
	// is confined to; it has to be there, and stays when the workspace ends. A relative one is
	// relative to the working directory of this process. "": a
	// folder of its own in ~/.<brand>/workspaces, which only this user may
	// enter.
	Folder string
	// KeepFolder leaves a folder of its own where it is when the workspace ends; one of
	// the same name that is made later finds it. false: it is removed with all that is in it, by
	// the next host of this home if this one is killed. No workspace finds what another one has
	// left; where that is still needed, as by sessions on disk, the folder has a number behind its
	// name.
	KeepFolder bool
	// Env is the environment that everything in the workspace has, beside what passes
	// of the host's.
	Env map[string]string
	// Pass names the variables of the host that may pass, of those that kernels of the
	// host inherit; PATH, HOME and the language always do. nil: all of those; empty: no other.
	Pass []string
	// Labels are the caller's own: [Set.List] can choose by them.
	Labels map[string]string
	// Limits bound each session and process of the workspace. The zero value: those
	// of the host. A backend that cannot keep to them refuses.
	Limits kernel.Limits
	// Total bounds everything in the workspace together. The zero value: nothing is bounded
	// so.
	Total Total
	// Isolation says what sessions and processes are kept from; the folder of the
	// workspace is always one that they may write, in place of the host's Write. The zero value: that of the
	// host, and without a Level the rung of the host. A backend that cannot isolate refuses.
	Isolation kernel.Isolation
	// Quota is how many bytes the files of the folder may have; see files.Options. No file
	// that a session or a process makes may be longer, and what runs is stopped when the folder
	// has more and still grows while it runs, see Total; a cell that is over before that is seen
	// is told of it at its end, in its result's Exceeded. 0: no limit.
	Quota int64
	// EndAt is when it ends, whatever it does then. Zero: never.
	EndAt time.Time
	// IdleEnd is after how long without use it ends. 0: never.
	IdleEnd time.Duration
	// Owner is the agent or tenant that it belongs to: it counts in MaxPerOwner, and
	// ends when the owner leaves. It is the owner of calls in it that name none. "": no one.
	Owner string
}

// SetOptions say how many workspaces a host has. The zero value of each field is its
// default.
type SetOptions struct {
	// Max is how many workspaces there may be; for one more, the least recently used one
	// that is not in use and not pinned is ended. 0: any number.
	Max int
	// MaxPerOwner is how many one Options.Owner may have; for one more, that of the owner is
	// ended. With either limit, ErrNoPlace is the error where none can be ended. 0: any number.
	MaxPerOwner int
	// looks leaves control groups alone. It is for tests.
	looks bool
}

// OptionsError says which option cannot be used.
type OptionsError struct {
	// Field is its name: "name", "folder", "env", ...
	Field string
	// Problem names it and the next step.
	Problem string
}

// Error returns the problem.
func (e *OptionsError) Error() string { return e.Problem }

// maxName is how long the name of a workspace may be.
const maxName = 64

// CheckName refuses names that are no single element of a path on every system.
func CheckName(name string) error {
	ok := name != "" && len(name) <= maxName && name[0] != '.' && name[0] != '-'
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
	}
	if !ok || strings.HasSuffix(name, ".") || !filepath.IsLocal(name) {
		return &OptionsError{"name", fmt.Sprintf("%.80q cannot be the name of a workspace: use 1 to %d letters, digits, -, _ and ., without one of the last two signs at an end", name, maxName)}
	}
	return nil
}

// settle checks options and makes the folder absolute. They are the workspace's own
// from then on.
func (o Options) settle() (Options, error) {
	o.Env, o.Labels, o.Pass = maps.Clone(o.Env), maps.Clone(o.Labels), slices.Clone(o.Pass)
	if o.Folder != "" {
		abs, err := filepath.Abs(o.Folder)
		if err != nil {
			return o, &OptionsError{"folder", err.Error()}
		}
		o.Folder = abs
	}
	for k, v := range o.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") || !utf8.ValidString(k) || !utf8.ValidString(v) {
			return o, &OptionsError{"env", fmt.Sprintf("the environment variable %q cannot be set: a name is not empty and has no equals sign, and neither it nor the value has a zero byte", k)}
		}
	}
	for k, v := range o.Labels {
		if k == "" || !utf8.ValidString(k) || !utf8.ValidString(v) || strings.ContainsAny(k, "=,\x00") {
			return o, &OptionsError{"labels", fmt.Sprintf("the label %q cannot be used: a name is a text that is not empty and has no equals sign and no comma", k)}
		}
	}
	switch {
	case o.Limits.Negative():
		return o, &OptionsError{"limits", fmt.Sprintf("a limit of the workspace is negative: %+v; use 0 for that of the host", o.Limits)}
	case o.Total.negative():
		return o, &OptionsError{"total", fmt.Sprintf("a limit of the workspace as a whole is negative: %+v; use 0 for none", o.Total)}
	case o.Quota < 0:
		return o, &OptionsError{"quota", fmt.Sprintf("the quota of %d bytes is negative; use 0 for none", o.Quota)}
	case o.IdleEnd < 0:
		return o, &OptionsError{"idle_end", fmt.Sprintf("the idle time %v is negative; use 0 for none", o.IdleEnd)}
	}
	return o, nil
}

// same reports whether two workspaces would be made alike. Lifetimes and labels are not
// compared: they may have been changed since.
func (o Options) same(other Options) bool {
	for _, one := range []*Options{&o, &other} {
		one.EndAt, one.IdleEnd, one.Labels = time.Time{}, 0, nil
		if len(one.Env) == 0 {
			one.Env = nil
		}
	}
	return reflect.DeepEqual(o, other)
}

// Zero reports whether nothing is asked for: opening a workspace that is there with
// such options returns it, however it was made.
func (o Options) Zero() bool { return reflect.ValueOf(o).IsZero() }
