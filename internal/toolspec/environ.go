package toolspec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/joho/godotenv"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/secret"
)

// EnvFile is the file in a tool's folder that holds its secrets.
const EnvFile = ".env"

// allowed are the variables of the host that a tool sees. Nothing that could
// be a secret is among them, and PYTHONHOME is not, which would lead the
// interpreter of a virtual environment astray.
var allowed = []string{
	"PATH", "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "SYSTEMDRIVE", "TEMP", "TMP", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE",
}

// The variables that tools are given.
const (
	VarToolID    = "PIXIE_TOOL_ID"
	VarArtifacts = "PIXIE_ARTEFACTS_ROOT"
	VarValidate  = "PIXIE_VALIDATE"
	VarToken     = "COPPICE_TOOL_TOKEN"
)

// Reserved reports whether a name is one that a tool's .env file cannot set.
func Reserved(name string) bool {
	name = strings.ToUpper(name)
	switch name {
	case "PYTHONUNBUFFERED", "PYTHONPYCACHEPREFIX", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT":
		return true
	}
	return strings.HasPrefix(name, "PIXIE_") || strings.HasPrefix(name, "COPPICE_")
}

// Env is the environment of a tool's process.
type Env struct {
	// Vars are NAME=value, one for each name.
	Vars []string
	// Secrets are the values that must not be shown to anybody.
	Secrets []string
	mask    func(string) string
	// Ignored are the names of the tool's file that are reserved.
	Ignored []string
	// Missing are the secrets that the tool requires and that its file does not
	// set.
	Missing []string
}

// Environment puts the environment of a tool together: what is allowed of host,
// then the tool's .env file, then ours. A later one wins; the .env file may set
// PATH, since the interpreter is started by its path.
func Environment(ctx context.Context, t *Tool, dir string, host, ours []string) (Env, error) {
	var e Env
	vars := map[string]string{}
	for _, kv := range host {
		name, value, ok := strings.Cut(kv, "=")
		if ok && passes(runtime.GOOS, name) {
			vars[name] = value
		}
	}
	set, err := readEnv(ctx, filepath.Join(dir, EnvFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
			return e, fmt.Errorf("read the .env file of the tool %s: %w", t.ID, err)
		}
		// The parser's error quotes the file, and with it secrets.
		return e, fmt.Errorf("read the .env file of the tool %s: it is not in the form NAME=value, one a line", t.ID)
	}
	for _, name := range sortedKeys(set) {
		switch value := set[name]; {
		case Reserved(name):
			e.Ignored = append(e.Ignored, name)
		case value == "" || strings.ContainsRune(name+value, 0):
		default:
			vars[name] = value
			if t.secret(name, value) {
				e.Secrets = append(e.Secrets, value)
			}
		}
	}
	for _, s := range t.Secrets {
		if s.Required && set[s.Key] == "" {
			e.Missing = append(e.Missing, s.Key)
		}
	}
	for _, kv := range ours {
		name, value, _ := strings.Cut(kv, "=")
		vars[name] = value
	}
	e.mask = secret.Masker(e.Secrets, leastMasked)
	for _, name := range sortedKeys(vars) {
		e.Vars = append(e.Vars, name+"="+vars[name])
	}
	return e, nil
}

// maxEnv bounds a .env file, in bytes.
const maxEnv = 1 << 20

func readEnv(ctx context.Context, path string) (map[string]string, error) {
	data, err := file.Read(ctx, path, maxEnv)
	if err != nil {
		return nil, err
	}
	return godotenv.UnmarshalBytes(data)
}

// passes reports whether a tool sees a variable of the host. On Windows names
// differ in nothing but their case.
func passes(goos, name string) bool {
	if goos == "windows" {
		name = strings.ToUpper(name)
	}
	return slices.Contains(allowed, name)
}

// secret reports whether a variable is a secret: it is declared as one, or its
// name or its value says so.
func (t *Tool) secret(name, value string) bool {
	if slices.ContainsFunc(t.Secrets, func(s Secret) bool { return s.Key == name }) {
		return true
	}
	return secret.Variable(name, value)
}

// leastMasked is how long a secret is at least that Mask hides: shorter ones stand in
// any text.
const leastMasked = 4

// Mask replaces every secret of 4 bytes or more in a text by three
// stars. The zero Env masks nothing.
func (e *Env) Mask(text string) string {
	if e.mask == nil {
		return text
	}
	return e.mask(text)
}

// Python returns the interpreter of a tool's virtual environment, and whether
// it is there.
func Python(dir string) (string, bool) {
	path := pythonPath(runtime.GOOS, dir)
	info, err := os.Stat(path)
	return path, err == nil && !info.IsDir()
}

// pythonPath is where a virtual environment has its interpreter.
func pythonPath(goos, dir string) string {
	if goos == "windows" {
		return filepath.Join(dir, ".venv", "Scripts", "python.exe")
	}
	return filepath.Join(dir, ".venv", "bin", "python")
}
