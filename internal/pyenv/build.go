package pyenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/process"
)

// stopGrace is what pip gets to clean up when Setup is interrupted.
const stopGrace = 2 * time.Second

// find chooses the interpreter to build with.
func (b *build) find(ctx context.Context) error {
	if b.base.Path != "" {
		return nil
	}
	b.tell(Stage{Name: StageFinding})
	env := b.pipEnv()
	r := resolver{env: env, home: env.get(homeVar)}
	if b.python != "" {
		r.try(ctx, SourceOption, r.explicit(b.python), "", true)
	} else {
		for _, s := range []Source{SourcePython3, SourcePython} {
			r.tryPath(ctx, s)
		}
	}
	rt, err := r.result(b.python)
	if err != nil {
		return err
	}
	if strings.HasPrefix(rt.Path, b.dir+string(os.PathSeparator)) {
		return &SetupError{Stage: StageFinding, Problem: fmt.Sprintf("%s lies in the environment that is to be built", rt.Path), Next: "name another interpreter with --python"}
	}
	b.base = rt
	return nil
}

// mark says that the environment cannot be used until finish.
func (b *build) mark() error {
	text := "The set-up of " + b.dir + " has not finished. Run coppice setup.\n"
	if err := os.WriteFile(incompleteMark(b.dir), []byte(text), 0o600); err != nil {
		return fmt.Errorf("mark %s as incomplete: %w", b.dir, err)
	}
	// pip and venv unpack here, so that an interruption leaves nothing elsewhere.
	if err := os.RemoveAll(scratchDir(b.dir)); err != nil {
		return fmt.Errorf("remove what an interrupted set-up left: %w", err)
	}
	if err := os.Mkdir(scratchDir(b.dir), 0o700); err != nil {
		return fmt.Errorf("set up a Python environment: %w", err)
	}
	return nil
}

// create makes an empty virtual environment in place of whatever is there.
func (b *build) create(ctx context.Context, was EnvState) error {
	if was != EnvAbsent {
		b.tell(Stage{Name: StageRemoving, Detail: b.dir})
	}
	if err := os.RemoveAll(b.dir); err != nil {
		return fmt.Errorf("remove %s: %w", b.dir, err)
	}
	b.tell(Stage{Name: StageCreating, Detail: fmt.Sprintf("with Python %s at %s", b.base.Version, b.base.Path)})
	return b.step(ctx, StageCreating, b.base.Path, []string{"-m", "venv", b.dir}, nil)
}

// install lets pip install the requirements.
func (b *build) install(ctx context.Context) error {
	file := requirementsIn(b.dir)
	if err := os.WriteFile(file, []byte(b.requirements), 0o600); err != nil {
		return fmt.Errorf("write the requirements: %w", err)
	}
	args := []string{
		"-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar", "off",
		"--require-hashes", "--no-deps", "-r", file,
	}
	// A wheel runs no code of its own while it is installed. A user without
	// wheels for the system says so in pip's own settings.
	if !b.env.has("PIP_NO_BINARY") && !b.env.has("PIP_ONLY_BINARY") {
		args = append(args, "--only-binary", ":all:")
	}
	counter := pipCounter{stage: Stage{Name: StageCollecting, Total: countRequirements(b.requirements)}}
	b.tell(counter.stage)
	return b.step(ctx, StageInstalling, venvPython(b.dir), args, func(line string) {
		if s, news := counter.line(line); news {
			b.tell(s)
		}
	})
}

// finish checks the environment and takes the mark away.
func (b *build) finish(ctx context.Context) error {
	b.tell(Stage{Name: StageChecking})
	p, err := probe(ctx, venvPython(b.dir), b.pipEnv(), "")
	if err != nil {
		return fmt.Errorf("check the Python environment in %s: its interpreter %w", b.dir, err)
	}
	packages, err := Preflight(ctx, Runtime{Path: venvPython(b.dir), Version: p.version(), Source: SourceManaged, Env: b.pipEnv()})
	if err != nil {
		return fmt.Errorf("check the Python environment in %s: %w", b.dir, err)
	}
	old, _ := readStamp(b.dir) // an update keeps the interpreter it was built with
	s := stamp{Requirements: hashOf(b.requirements), Base: b.base.Path, Python: p.version(), Packages: packages, Built: time.Now().UTC()}
	if s.Base == "" {
		s.Base = old.Base
	}
	if err := writeStamp(b.dir, s); err != nil {
		return err
	}
	if err := os.RemoveAll(scratchDir(b.dir)); err != nil {
		return fmt.Errorf("remove what the set-up needed: %w", err)
	}
	if err := os.Remove(incompleteMark(b.dir)); err != nil {
		return fmt.Errorf("mark %s as complete: %w", b.dir, err)
	}
	return nil
}

// step runs one long command to its end. line, if not nil, gets its output.
func (b *build) step(ctx context.Context, stage StageName, program string, args []string, line func(string)) error {
	o := process.RingOptions{}
	if line != nil {
		o.Tee = process.Lines(line)
	}
	out := process.NewRing(o)
	p, err := process.Start(process.Options{Path: program, Args: args, Env: b.stepEnv(), Dir: filepath.Dir(b.dir), Stdout: out, Stderr: out})
	if err != nil {
		return fmt.Errorf("set up a Python environment: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		if err := p.Stop(context.WithoutCancel(ctx), process.StopOptions{Grace: stopGrace}); err != nil {
			return fmt.Errorf("stop the set-up: %w", err)
		}
		return context.Cause(ctx)
	}
	if err := p.Err(); err != nil {
		return explain(stage, b.base, err, out.Tail(tailLines))
	}
	return nil
}

// pipEnv is the host's environment without what would lead Python or pip away
// from the environment that is built.
func (b *build) pipEnv() environ {
	return b.env.without("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__",
		"PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_DRY_RUN").with("PIP_USER", "0")
}

func (b *build) stepEnv() environ {
	env := b.pipEnv().with("PYTHONUNBUFFERED", "1").with("PYTHONIOENCODING", "utf-8:backslashreplace")
	for _, name := range []string{"TMPDIR", "TEMP", "TMP"} {
		env = env.with(name, scratchDir(b.dir))
	}
	return env
}
