package workspace

import (
	"slices"
	"strings"

	"github.com/coppice-run/coppice/internal/pyenv"
)

// always are the variables that pass in any case: nothing runs well without them. They
// are compared without case, as Windows does.
var always = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USERPROFILE", "COMSPEC", "PATHEXT"}

// Passing returns the entries of a host's environment that may pass by Options.Pass. The
// filter that keeps secrets from kernels comes on top of that; what it is to let through
// besides is said by one of them.
func (o Options) Passing(env []string) []string {
	if o.Pass == nil {
		return env
	}
	kept := []string{}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		upper := strings.ToUpper(name)
		if slices.Contains(o.Pass, name) || name == pyenv.PassVariable || slices.Contains(always, upper) || strings.HasPrefix(upper, "LC_") {
			kept = append(kept, kv)
		}
	}
	return kept
}
