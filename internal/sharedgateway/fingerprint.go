package sharedgateway

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/internal/pyenv"
)

// Supported says whether gateways can be shared on this system: it needs locks
// that end with their holder, also for a gateway that is written in Python.
const Supported = runtime.GOOS == "linux" || runtime.GOOS == "darwin"

// counted are the names, and the beginnings of names, that change what an
// interpreter is from its start on. All others can be set in a kernel later.
var (
	counted         = []string{"VIRTUAL_ENV", "HOME", "LANG", "TZ", "TMPDIR"}
	countedPrefixes = []string{"PYTHON", "CONDA", "LD_", "DYLD_", "LC_"}
)

// Fingerprint names an interpreter with its environment: 16 characters that are
// the same for every host that would start the same kernels.
func Fingerprint(rt pyenv.Runtime) string {
	h := sha256.New()
	add := func(s string) { _, _ = h.Write(append([]byte(s), 0)) } // never fails
	add(rt.Path)
	add(rt.Version)
	add(rt.Venv)
	if info, err := os.Stat(rt.Path); err == nil { // replaced in place: another one
		add(info.ModTime().UTC().String())
	}
	env := slices.Sorted(slices.Values(rt.Env))
	for _, entry := range slices.Compact(env) {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(counted, name) || slices.ContainsFunc(countedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			add(entry)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
