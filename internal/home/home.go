package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultBrand is the brand of hosts that name none.
const DefaultBrand = "coppice"

// ErrInvalid is matched by errors about a brand or a home that cannot be used.
var ErrInvalid = errors.New("invalid home")

// Home says whose folders are meant. The zero value of a field is its default.
type Home struct {
	// Brand names the folder: ~/.<brand>. "": DefaultBrand.
	Brand string
	// Path is the folder that holds ~/.<brand>. "": COPPICE_HOME from Env, else the
	// user's home directory.
	Path string
	// Env is the environment. nil: that of this process.
	Env []string
}

// Resolve fills in what is left out. The error matches ErrInvalid when the brand is
// not a plain name, or when there is no home directory.
func (h Home) Resolve() (Home, error) {
	if h.Env == nil {
		h.Env = os.Environ()
	}
	h.Env = slices.Clone(h.Env)
	if h.Brand == "" {
		h.Brand = DefaultBrand
	}
	if strings.ContainsAny(h.Brand, `/\.`) {
		return h, fmt.Errorf("%w: the brand %q is not a plain name", ErrInvalid, h.Brand)
	}
	if h.Path == "" {
		h.Path = Lookup(h.Env, "COPPICE_HOME")
	}
	if h.Path == "" {
		path, err := os.UserHomeDir()
		if err != nil {
			return h, fmt.Errorf("%w: no home directory: %w; set COPPICE_HOME", ErrInvalid, err)
		}
		h.Path = path
	}
	return h, nil
}

// Dir returns the folder <Path>/.<Brand> of a resolved home.
func (h Home) Dir() string { return filepath.Join(h.Path, "."+h.Brand) }

// Join returns a path below Dir.
func (h Home) Join(parts ...string) string {
	return filepath.Join(append([]string{h.Dir()}, parts...)...)
}

// Lookup returns the value of a variable in an environment list, "" when it is not
// there. The last entry wins, as it does for a process. A variable that had a name with
// PI_ and has one with COPPICE_ now is looked for by both, the newer one first.
func Lookup(env []string, name string) string {
	if now := newer(name); now != "" {
		if v := lookup(env, now); v != "" {
			return v
		}
	}
	return lookup(env, name)
}

func lookup(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if k, v, ok := strings.Cut(entry, "="); ok && k == name {
			return v
		}
	}
	return ""
}

// SwitchedOn reports whether a variable is set to something that means yes: not to
// "", 0, false, no or off.
func SwitchedOn(env []string, name string) bool {
	switch Lookup(env, name) {
	case "", "0", "false", "no", "off":
		return false
	default:
		return true
	}
}

// TempDir is the folder for temporary files: TMPDIR from env, else that of the
// system.
func TempDir(env []string) string {
	if dir := Lookup(env, "TMPDIR"); dir != "" {
		return dir
	}
	return os.TempDir()
}

// ToolMode returns which tools a value of PI_PY asks for, in any case: "bash-only"
// for 0 and bash, "ipy-only" for 1 and py, "both" for mix and both, and "" for
// everything else.
func ToolMode(py string) string {
	switch strings.ToLower(py) {
	case "0", "bash":
		return "bash-only"
	case "1", "py":
		return "ipy-only"
	case "mix", "both":
		return "both"
	default:
		return ""
	}
}

// WorkingDir makes a working directory absolute, "" being that of this process, and
// refuses one that does not exist or is not a directory.
func WorkingDir(cwd string) (string, error) {
	abs, err := filepath.Abs(cwd)
	if err != nil {
		return "", fmt.Errorf("working directory %q: %w", cwd, err)
	}
	info, err := os.Stat(abs)
	switch {
	case os.IsNotExist(err):
		return "", errors.New("Working directory does not exist: " + abs + "; make it, or name another folder")
	case err != nil:
		return "", fmt.Errorf("Working directory cannot be used: %w", err) //nolint:staticcheck // as above
	case !info.IsDir():
		return "", errors.New("Working directory is not a directory: " + abs + "; name a folder")
	}
	return abs, nil
}
