package pyenv

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// environ is an environment as os.Environ returns it. Its methods return a
// changed copy and follow the system's rule about case.
type environ []string

func sameName(a, b string) bool {
	if foldNames {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// get returns the value of a name, the last entry winning as in os/exec.
func (e environ) get(name string) string {
	for _, entry := range slices.Backward(e) {
		if n, v, ok := strings.Cut(entry, "="); ok && sameName(n, name) {
			return v
		}
	}
	return ""
}

func (e environ) has(name string) bool { return e.get(name) != "" }

func (e environ) without(names ...string) environ {
	return slices.DeleteFunc(slices.Clone(e), func(entry string) bool {
		n, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(names, func(name string) bool { return sameName(n, name) })
	})
}

func (e environ) with(name, value string) environ {
	return append(e.without(name), name+"="+value)
}

// inVenv returns the environment in which programs of a virtual environment are
// found first; "" leaves every virtual environment.
func (e environ) inVenv(venv string) environ {
	if venv == "" {
		return e.without("VIRTUAL_ENV")
	}
	return e.with("VIRTUAL_ENV", venv).onPath(binDir(venv))
}

// onPath returns the environment in which programs of dir are found first.
func (e environ) onPath(dir string) environ {
	if old := e.get("PATH"); old != "" {
		dir += string(os.PathListSeparator) + old
	}
	return e.with("PATH", dir)
}

// lookPath finds a program on the environment's own PATH, which need not be the
// PATH of this process. Relative entries are passed over: what they hold
// depends on where the host happens to be.
func (e environ) lookPath(name string) string {
	for _, dir := range filepath.SplitList(e.get("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if file := filepath.Join(dir, name+exeSuffix); isProgram(file) {
			return file
		}
	}
	return ""
}

func isProgram(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && (foldNames || info.Mode()&0o111 != 0)
}
