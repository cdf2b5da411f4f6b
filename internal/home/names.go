package home

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// older are the names by which variables were known before they had the prefix COPPICE_.
// They count as before, where the newer name is not set.
var older = map[string]bool{
	"PI_ARTIFACTS_DIR": true, "PI_DEBUG_STARTUP": true, "PI_PY": true, "PI_PYTHON_GATEWAY_TOKEN": true, "PI_PYTHON_GATEWAY_URL": true,
	"PI_PYTHON_IPC_TRACE": true, "PI_PYTHON_SKIP_CHECK": true, "PI_SESSION_FILE": true,
}

// newer is the name that a variable has now, "" when it has no other.
func newer(name string) string {
	if !older[name] {
		return ""
	}
	return "COPPICE_" + strings.TrimPrefix(name, "PI_")
}

// Name is the name by which env sets a variable that may have two: the newer one, unless only
// the older one is set. It is for texts that tell people what to change.
func Name(env []string, name string) string {
	now := newer(name)
	if now == "" || lookup(env, now) == "" && lookup(env, name) != "" {
		return name
	}
	return now
}

// Without returns env without a variable, by either of its names. env is not changed.
func Without(env []string, name string) []string {
	now := cmp.Or(newer(name), name)
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		set, _, _ := strings.Cut(entry, "=")
		return set == name || set == now
	})
}

// WithOlderNames returns env with each variable that is set by its newer name under the
// older one, too, for programs that read that. env is not changed.
func WithOlderNames(env []string) []string {
	var more []string
	for _, name := range slices.Sorted(maps.Keys(older)) {
		if v := lookup(env, newer(name)); v != "" {
			more = append(more, name+"="+v)
		}
	}
	if more == nil {
		return env
	}
	out := make([]string, 0, len(env)+len(more))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !older[name] || lookup(env, newer(name)) == "" {
			out = append(out, entry)
		}
	}
	return append(out, more...)
}
