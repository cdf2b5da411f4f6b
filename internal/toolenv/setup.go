package toolenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/toolspec"
)

// Options say which environment to make.
type Options struct {
	// Dir is the folder of the tool. Required.
	Dir string
	// Python is the interpreter to make it with. "": python3, then python, on
	// PATH.
	Python string
	// Env is the environment in which pip runs. nil: none.
	Env []string
	// Force makes it again, whatever is there.
	Force bool
	// Progress hears each line that pip prints, from one goroutine; nil: it is not
	// called.
	Progress func(line string)
}

// Result says what was made.
type Result struct {
	Dir string `json:"dir"`
	// Python is the interpreter in the environment.
	Python string `json:"python"`
	// Changed is false when it was there already.
	Changed  bool          `json:"changed"`
	Packages int           `json:"packages"`
	Elapsed  time.Duration `json:"elapsed_ns"`
}

// Error says why an environment could not be made.
type Error struct {
	// Step is what failed: "make a virtual environment".
	Step string
	// Tail is the end of what the failing command printed.
	Tail []string
	Err  error
}

// Error names the step and the last words of the command.
func (e *Error) Error() string {
	text := e.Step + ": " + e.Err.Error()
	for _, l := range slices.Backward(e.Tail) {
		if l = strings.TrimSpace(l); l != "" {
			return text + " (its last word: " + l + ")"
		}
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// stamp is what an environment was made from; it lies in it.
type stamp struct {
	Needs string `json:"needs"`
}

const (
	stampFile = "coppice-tool.json"
	lockName  = ".venv.lock"
	tailLines = 12
	lockPoll  = 100 * time.Millisecond
	stopGrace = 2 * time.Second
	private   = 0o600
	maxFile   = 4 << 20 // bytes of a file that says what a tool needs
)

// needs is what a tool has to have installed.
type needs struct {
	args  []string // of pip install; nil: nothing
	count int
	hash  string
}

// readNeeds reads requirements.txt, or the dependencies of pyproject.toml.
func readNeeds(ctx context.Context, dir string) (needs, error) {
	data, err := file.Read(ctx, filepath.Join(dir, "requirements.txt"), maxFile)
	switch {
	case err == nil:
		n := needs{hash: hashOf("requirements", string(data))}
		for l := range strings.Lines(string(data)) {
			if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") && !strings.HasPrefix(l, "--hash") {
				n.count++
			}
		}
		if n.count > 0 {
			n.args = []string{"-r", filepath.Join(dir, "requirements.txt")}
			if strings.Contains(string(data), "--hash=") {
				n.args = append([]string{"--require-hashes", "--no-deps"}, n.args...)
			}
		}
		return n, nil
	case !errors.Is(err, fs.ErrNotExist):
		return needs{}, fmt.Errorf("read what the tool needs: %w", err)
	}
	p, err := ReadProject(ctx, dir)
	if err != nil {
		return needs{}, err
	}
	return needs{args: p.Dependencies, count: len(p.Dependencies), hash: hashOf(append([]string{"pyproject"}, p.Dependencies...)...)}, nil
}

// Project is what a pyproject.toml says.
type Project struct {
	Name           string   `toml:"name"`
	RequiresPython string   `toml:"requires-python"`
	Dependencies   []string `toml:"dependencies"`
}

// ReadProject reads the pyproject.toml of a tool. One that does not exist is an
// error that matches fs.ErrNotExist.
func ReadProject(ctx context.Context, dir string) (Project, error) {
	var pyproject struct {
		Project Project `toml:"project"`
	}
	data, err := file.Read(ctx, filepath.Join(dir, "pyproject.toml"), maxFile)
	if err == nil {
		err = toml.Unmarshal(data, &pyproject)
	}
	if err != nil {
		return Project{}, fmt.Errorf("read pyproject.toml: %w", err)
	}
	for _, d := range pyproject.Project.Dependencies {
		if strings.HasPrefix(strings.TrimSpace(d), "-") {
			return Project{}, fmt.Errorf("read pyproject.toml: %q is not a dependency", d)
		}
	}
	return pyproject.Project, nil
}

func hashOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d %s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Ready reports whether the environment of a tool is there and matches its
// files; why says what does not.
func Ready(ctx context.Context, dir string) (ready bool, why string) {
	n, err := readNeeds(ctx, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err.Error()
	}
	return n.ready(ctx, dir)
}

func (n needs) ready(ctx context.Context, dir string) (ready bool, why string) {
	if path, there := toolspec.Python(dir); !there {
		return false, "there is no interpreter at " + path
	}
	data, err := file.Read(ctx, filepath.Join(dir, ".venv", stampFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, "it was not made by coppice tool setup, or not finished"
	}
	var s stamp
	if err != nil || json.Unmarshal(data, &s) != nil || s.Needs != n.hash {
		return false, "what the tool needs has changed since it was made"
	}
	return true, ""
}

// Setup makes the environment of a tool, or finds it ready.
func Setup(ctx context.Context, o Options) (Result, error) {
	began := time.Now()
	python, _ := toolspec.Python(o.Dir)
	r := Result{Dir: filepath.Join(o.Dir, ".venv"), Python: python}
	n, err := readNeeds(ctx, o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	r.Packages = n.count
	lock := flock.New(filepath.Join(o.Dir, lockName), flock.SetFlag(os.O_CREATE|os.O_RDONLY|file.NonBlock))
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return r, fmt.Errorf("wait for another set-up of %s: %w", o.Dir, err)
	}
	defer func() { _ = lock.Close() }()
	if ready, _ := n.ready(ctx, o.Dir); ready && !o.Force {
		r.Elapsed = time.Since(began)
		return r, nil
	}
	r.Changed = true
	if err := build(ctx, o, n, r.Dir, python); err != nil {
		return r, err
	}
	data, err := json.Marshal(stamp{Needs: n.hash})
	if err == nil {
		err = file.Write(filepath.Join(r.Dir, stampFile), data, file.WriteOptions{})
	}
	r.Elapsed = time.Since(began)
	if err != nil {
		return r, fmt.Errorf("finish the environment of the tool: %w", err)
	}
	return r, nil
}

func build(ctx context.Context, o Options, n needs, dir, python string) error {
	base, err := findPython(o)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	args := []string{"-m", "venv", dir}
	if len(n.args) == 0 {
		args = []string{"-m", "venv", "--without-pip", dir}
	}
	if err := run(ctx, o, "make a virtual environment", base, args); err != nil {
		return err
	}
	if len(n.args) == 0 {
		return nil
	}
	install := append([]string{
		"-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar", "off", "--only-binary", ":all:",
	}, n.args...)
	return run(ctx, o, "install the packages of the tool", python, install)
}

// findPython looks for the interpreter to build with on the PATH of Env.
func findPython(o Options) (string, error) {
	names := []string{o.Python}
	if o.Python == "" {
		names = []string{"python3", "python"}
	}
	for _, name := range names {
		if filepath.IsAbs(name) {
			return name, nil
		}
		if strings.ContainsRune(name, os.PathSeparator) {
			return filepath.Abs(name)
		}
		for _, dir := range filepath.SplitList(lookup(o.Env, "PATH")) {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("no Python on PATH (%s); install one, or name it with --python", strings.Join(names, ", "))
}

func lookup(env []string, name string) string {
	value := ""
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok && strings.EqualFold(k, name) {
			value = v
		}
	}
	return value
}

// withheld are variables that would lead Python or pip away from the
// environment that is made.
var withheld = map[string]bool{
	"PYTHONHOME": true, "PYTHONPATH": true, "VIRTUAL_ENV": true, "__PYVENV_LAUNCHER__": true,
	"PIP_TARGET": true, "PIP_PREFIX": true, "PIP_ROOT": true, "PIP_USER": true, "PIP_DRY_RUN": true, "PIP_REQUIRE_VIRTUALENV": true,
}

// run runs one command to its end, without a shell.
func run(ctx context.Context, o Options, step, program string, args []string) error {
	ring := process.RingOptions{}
	if o.Progress != nil {
		ring.Tee = process.Lines(o.Progress)
	}
	out := process.NewRing(ring)
	env := []string{"PYTHONUNBUFFERED=1", "PYTHONIOENCODING=utf-8:backslashreplace"}
	for _, kv := range o.Env {
		if name, _, ok := strings.Cut(kv, "="); ok && !withheld[strings.ToUpper(name)] {
			env = append(env, kv)
		}
	}
	p, err := process.Start(process.Options{Path: program, Args: args, Env: env, Dir: o.Dir, Stdout: out, Stderr: out})
	if err != nil {
		return &Error{Step: step, Err: err}
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		if err := p.Stop(context.WithoutCancel(ctx), process.StopOptions{Grace: stopGrace}); err != nil {
			return &Error{Step: step, Err: err}
		}
		return fmt.Errorf("%s: %w", step, context.Cause(ctx))
	}
	if err := p.Err(); err != nil {
		return &Error{Step: step, Tail: out.Tail(tailLines), Err: fmt.Errorf("the command %w", err)}
	}
	return nil
}
