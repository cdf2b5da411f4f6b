package pyenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/internal/file"
)

// lockPoll is how often Setup looks whether another run of it has finished.
const lockPoll = 100 * time.Millisecond

// SetupOptions says what environment to build.
type SetupOptions struct {
	// Home is the directory of the brand; the environment is ManagedDir(Home).
	Home string
	// Dir is the environment itself, in place of one in Home.
	Dir string
	// Python is the interpreter to build with, as in Options.Python. "" takes
	// python3, then python, from PATH. An environment that was built with
	// another interpreter than the one named here is built from scratch.
	Python string
	// Env is the environment in which pip runs; nil is that of the process. It
	// is not filtered: pip needs its index, proxy and certificate settings.
	Env []string
	// Progress, if not nil, hears what Setup is doing. It is called from one
	// goroutine at a time, not always that of the caller, and must not block.
	Progress func(Stage)

	requirements string // tests install less
}

// StageName says what Setup is doing.
type StageName string

// The stages, in order. Waiting happens only while another run holds the lock.
const (
	StageWaiting    StageName = "waiting"    // for another run to finish
	StageFinding    StageName = "finding"    // an interpreter to build with
	StageRemoving   StageName = "removing"   // an environment that cannot be used
	StageCreating   StageName = "creating"   // the virtual environment
	StageCollecting StageName = "collecting" // packages, one by one
	StageInstalling StageName = "installing" // all that were collected
	StageChecking   StageName = "checking"   // that they can be imported
	StageReady      StageName = "ready"
)

// Stage is one report of progress.
type Stage struct {
	Name StageName `json:"name"`
	// Detail is for people: a package, a path, a reason.
	Detail string `json:"detail,omitempty"`
	// Done and Total count packages while they are collected. Total shrinks
	// first, as pip leaves out what other systems need.
	Done  int `json:"done,omitempty"`
	Total int `json:"total,omitempty"`
	// Elapsed counts from the call of Setup.
	Elapsed time.Duration `json:"elapsed_ns"`
}

// SetupResult describes an environment.
type SetupResult struct {
	Dir   string   `json:"dir"`
	State EnvState `json:"state"`
	// Why explains any state but EnvReady: "its set-up did not finish".
	Why string `json:"why,omitempty"`
	// Python is its interpreter and Version that of Python, "" when it does not run.
	Python  string `json:"python,omitempty"`
	Version string `json:"version,omitempty"`
	// Packages are those a kernel gateway needs.
	Packages []Package `json:"packages,omitempty"`
	// Changed is false when everything was there.
	Changed bool          `json:"changed"`
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Setup builds the managed environment: a virtual environment with a kernel
// gateway, an IPython kernel, and all they depend on, in pinned versions whose
// hashes pip checks. When all of that is there it returns after one run of the
// interpreter.
//
// It may be interrupted at any instant, by ctx or by the death of the host; the
// next run starts over. Runs at the same time wait for each other, as long as
// ctx lets them. The error is a [*SetupError], a [*NoPythonError], or wraps the
// cause of ctx's end.
//
// The environment is built in place, under a mark beside it that goes away at
// the very end. Building elsewhere and renaming would leave scripts, such as
// bin/pip, that name an interpreter which is not there any more; and an update
// in place keeps the packages that the user added, unless it is interrupted: pip
// can leave a package half replaced, so that everything is then built from scratch.
func Setup(ctx context.Context, o SetupOptions) (SetupResult, error) {
	b, err := newBuild(o)
	if err != nil {
		return SetupResult{}, err
	}
	if r, done, err := b.upToDate(ctx); done || err != nil {
		return r, err
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return SetupResult{}, err
	}
	defer unlock()
	// Whoever held the lock may have done the work.
	if r, done, err := b.upToDate(ctx); done || err != nil {
		return r, err
	}
	if err := b.run(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("set up the Python environment in %s: interrupted: %w", b.dir, cause)
		}
		return SetupResult{}, err
	}
	r := b.inspect(ctx)
	if r.State != EnvReady {
		return r, &SetupError{Problem: fmt.Sprintf("the Python environment in %s is not ready after its set-up: %s", r.Dir, r.Why), Next: "run coppice setup again"}
	}
	r.Changed, r.Elapsed = true, time.Since(b.begin)
	b.tell(Stage{Name: StageReady, Detail: r.Dir})
	return r, nil
}

// Check describes the environment that Setup would build and changes nothing.
// The error is that of bad options; an environment that is not ready is not one.
func Check(ctx context.Context, o SetupOptions) (SetupResult, error) {
	b, err := newBuild(o)
	if err != nil {
		return SetupResult{}, err
	}
	r := b.inspect(ctx)
	if r.Version != "" {
		var missing *MissingPackagesError
		r.Packages, err = Preflight(ctx, Runtime{Path: r.Python, Version: r.Version, Source: SourceManaged, Env: b.pipEnv()})
		switch {
		case r.State != EnvReady:
		case errors.As(err, &missing):
			r.State, r.Why = EnvBroken, "packages were removed from it"
		case err != nil:
			r.State, r.Why = EnvBroken, err.Error()
		}
	}
	r.Elapsed = time.Since(b.begin)
	return r, nil
}

// build is one run of Setup. It belongs to the goroutine that called it, except
// progress, which pip's reader goroutine calls while that one waits for it.
type build struct {
	dir          string
	python       string // Options.Python
	env          environ
	requirements string
	progress     func(Stage)
	begin        time.Time
	base         Runtime // what python stands for, once found
}

func newBuild(o SetupOptions) (*build, error) {
	dir := o.Dir
	if dir == "" && o.Home != "" {
		dir = ManagedDir(o.Home)
	}
	if dir == "" {
		return nil, errors.New("set up a Python environment: neither its directory nor a home is given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("set up a Python environment: %w", err)
	}
	b := &build{dir: dir, python: o.Python, env: o.Env, requirements: o.requirements, progress: o.Progress, begin: time.Now()}
	if o.Env == nil {
		b.env = os.Environ()
	}
	if b.requirements == "" {
		b.requirements = requirements
	}
	return b, nil
}

func (b *build) tell(s Stage) {
	if b.progress != nil {
		s.Elapsed = time.Since(b.begin)
		b.progress(s)
	}
}

// upToDate reports whether there is nothing to do.
func (b *build) upToDate(ctx context.Context) (SetupResult, bool, error) {
	r := b.inspect(ctx)
	if r.State != EnvReady {
		return r, false, nil
	}
	if b.python != "" {
		if err := b.find(ctx); err != nil {
			return r, false, err
		}
		if stamped, err := readStamp(b.dir); err != nil || stamped.Base != b.base.Path {
			return r, false, nil
		}
	}
	r.Elapsed = time.Since(b.begin)
	return r, true, nil
}

// lock waits until no other run of Setup works on this environment. The system
// gives the lock back when the host dies.
func (b *build) lock(ctx context.Context) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(b.dir), 0o700); err != nil {
		return nil, fmt.Errorf("set up a Python environment: %w", err)
	}
	l := flock.New(lockFile(b.dir), flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|file.NonBlock))
	ok, err := l.TryLock()
	if err == nil && !ok {
		b.tell(Stage{Name: StageWaiting, Detail: "for another set-up of " + b.dir})
		ok, err = l.TryLockContext(ctx, lockPoll)
	}
	switch {
	case ctx.Err() != nil:
		_ = l.Close()
		return nil, fmt.Errorf("wait for another set-up of %s to finish: %w", b.dir, context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", lockFile(b.dir), err)
	case !ok:
		return nil, fmt.Errorf("lock %s: it is held", lockFile(b.dir))
	}
	return func() { _ = l.Close() }, nil
}

// run brings the environment from whatever state to ready.
func (b *build) run(ctx context.Context) error {
	r := b.inspect(ctx)
	if err := ctx.Err(); err != nil {
		return err // the interpreter was not let finish: that does not make it broken
	}
	if r.State == EnvForeign {
		return &SetupError{Stage: StageCreating, Problem: fmt.Sprintf("%s is there and is not a Python environment", b.dir), Next: "move it away and run coppice setup again"}
	}
	keep := r.State == EnvOutdated
	if b.base.Path != "" {
		if s, err := readStamp(b.dir); err != nil || s.Base != b.base.Path {
			keep = false // another interpreter was asked for
		}
	}
	if !keep {
		if err := b.find(ctx); err != nil {
			return err
		}
	}
	if err := b.mark(); err != nil {
		return err
	}
	if !keep {
		if err := b.create(ctx, r.State); err != nil {
			return err
		}
	}
	if err := b.install(ctx); err != nil {
		return err
	}
	return b.finish(ctx)
}
