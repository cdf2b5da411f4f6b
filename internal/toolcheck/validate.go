package toolcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/toolenv"
	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// Options say what to validate. The zero value of a field is its default.
type Options struct {
	// Dir is the folder of the tool. Required.
	Dir string
	// Env is the environment of the host.
	Env []string
	// StartTimeout bounds the start of the process. 0: 60 s.
	StartTimeout time.Duration
	// Progress hears of each check as it is done; nil: it is not called.
	Progress func(Check)
}

// The time that checks may take.
const (
	versionTimeout = 5 * time.Second
	firstByte      = 10 * time.Second
	fixtureBudget  = 60 * time.Second
	shutdownGrace  = 5 * time.Second
	runMargin      = 5 * time.Second
	maxDetails     = 20
)

// checker is one validation.
type checker struct {
	o       Options
	r       *Report
	entry   toolspec.Entry
	proc    *toolproc.Process
	temp    string // for the files of runs
	told    int    // checks that Progress has heard of
	sampled toolproc.Answer
	first   time.Duration // until the first event of the sample's stream; 0: none
	runs    int
}

// Validate makes the twelve checks. The error is only for the end of ctx; what
// is wrong with the tool is in the report.
func Validate(ctx context.Context, o Options) (Report, error) {
	c := &checker{o: o, r: &Report{Timestamp: time.Now().UTC().Truncate(time.Millisecond)}}
	c.entry = toolspec.Read(ctx, o.Dir)
	c.r.ToolID, c.r.ToolPath = c.entry.ID, c.entry.Dir
	why := "an earlier check failed"
	if failed := c.static(ctx); !failed {
		c.live(ctx)
	}
	if ctx.Err() != nil {
		why = "the validation was given up"
	}
	c.r.finish(why)
	c.tell()
	if ctx.Err() != nil {
		return *c.r, fmt.Errorf("validate %s: %w", c.r.ToolID, context.Cause(ctx))
	}
	return *c.r, nil
}

// step is one check.
func (c *checker) step(name string, check func() (Status, string, []string)) bool {
	began := time.Now()
	status, message, details := check()
	c.r.add(name, began, status, message, details...)
	c.tell()
	return status != Fail
}

func (c *checker) tell() {
	if c.o.Progress == nil {
		return
	}
	for ; c.told < len(c.r.Checks); c.told++ {
		c.o.Progress(c.r.Checks[c.told])
	}
}

// static are the checks that need no process; true: one failed.
func (c *checker) static(ctx context.Context) (failed bool) {
	return !c.step(FolderStructure, c.folder) || !c.step(ToolJSONParses, c.parses) || !c.step(SchemasCoherent, c.coherent) ||
		!c.step(PyprojectOK, func() (Status, string, []string) { return c.pyproject(ctx) }) || !c.step(VenvExists, func() (Status, string, []string) { return c.venv(ctx) })
}

func (c *checker) folder() (Status, string, []string) {
	info, err := os.Stat(c.entry.Dir)
	if err != nil || !info.IsDir() {
		return Fail, "there is no folder " + c.entry.Dir, nil
	}
	var missing []string
	program := "main.py"
	if c.entry.Tool != nil {
		program = c.entry.Tool.Entrypoint
	}
	for _, name := range []string{toolspec.FileName, "pyproject.toml", program} {
		if info, err := os.Stat(filepath.Join(c.entry.Dir, name)); err != nil || !info.Mode().IsRegular() {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return Fail, "files are missing: " + strings.Join(missing, ", "), nil
	}
	if info, err := os.Stat(filepath.Join(c.entry.Dir, toolspec.EnvFile)); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return Warn, fmt.Sprintf("others can read the secrets in .env (mode %04o); chmod 600 it", info.Mode().Perm()), nil
	}
	return Pass, "all files are there", nil
}

func (c *checker) parses() (Status, string, []string) {
	if broken, ok := errors.AsType[*toolspec.Error](c.entry.Err); ok {
		return Fail, fmt.Sprintf("problems: %d", len(broken.Problems)), toolspec.Lines(broken.Problems, maxDetails)
	}
	if c.entry.Err != nil {
		return Fail, c.entry.Err.Error(), nil
	}
	t := c.entry.Tool
	return Pass, fmt.Sprintf("inputs: %d, outputs: %d", len(t.Inputs), len(t.Outputs)), nil
}

func (c *checker) coherent() (Status, string, []string) {
	wrong, warnings := c.entry.Tool.Coherent(c.entry.Dir)
	switch {
	case len(wrong) > 0:
		return Fail, fmt.Sprintf("problems: %d", len(wrong)), toolspec.Lines(append(wrong, warnings...), maxDetails)
	case len(warnings) > 0:
		return Warn, warnings[0].String(), toolspec.Lines(warnings[1:], maxDetails)
	default:
		return Pass, "inputs and outputs make sense", nil
	}
}

// distribution is the name at the beginning of a dependency.
var distribution = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*`)

// A tool that imports one of these needs all that it stands on.
var web = []string{"fastapi", "uvicorn", "pydantic"}

func (c *checker) pyproject(ctx context.Context) (Status, string, []string) {
	p, err := toolenv.ReadProject(ctx, c.entry.Dir)
	if err != nil {
		return Fail, err.Error(), nil
	}
	if p.Name == "" {
		return Fail, "pyproject.toml has no project.name", nil
	}
	program, err := file.Read(ctx, filepath.Join(c.entry.Dir, c.entry.Tool.Entrypoint), maxProgram)
	if err != nil {
		return Fail, err.Error(), nil
	}
	has := map[string]bool{}
	var foreign []string
	for _, d := range p.Dependencies {
		name := distribution.FindString(d)
		if name == "" {
			return Fail, fmt.Sprintf("%q is not a dependency", d), nil
		}
		has[strings.ToLower(strings.ReplaceAll(name, "_", "-"))] = true
		if strings.Contains(d, "@") {
			foreign = append(foreign, d+": it does not come from the package index")
		}
	}
	var missing []string
	for _, name := range web {
		imported := regexp.MustCompile(`(?m)^\s*(import|from) ` + name + `\b`).Match(program)
		if imported && !has[name] {
			missing = append(missing, name)
		}
	}
	switch {
	case len(missing) > 0:
		return Fail, "the program imports what pyproject.toml does not depend on: " + strings.Join(missing, ", "), foreign
	case len(foreign) > 0:
		return Warn, foreign[0], foreign[1:]
	default:
		return Pass, fmt.Sprintf("dependencies: %d", len(p.Dependencies)), nil
	}
}

func (c *checker) venv(ctx context.Context) (Status, string, []string) {
	python, there := toolspec.Python(c.entry.Dir)
	if !there {
		return Fail, "there is no interpreter at " + python + "; make it with: coppice tool setup " + c.r.ToolID, nil
	}
	out := process.NewRing(process.RingOptions{})
	p, err := process.Start(process.Options{Path: python, Args: []string{"--version"}, Dir: c.entry.Dir, Stdout: out, Stderr: out})
	if err != nil {
		return Fail, "its interpreter does not start: " + err.Error(), nil
	}
	timer := time.NewTimer(versionTimeout)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-timer.C:
		_ = p.Stop(ctx, process.StopOptions{Grace: -1}) // that it hangs is the news
		return Fail, fmt.Sprintf("its interpreter does not tell its version within %v", versionTimeout), nil
	case <-ctx.Done():
		_ = p.Stop(ctx, process.StopOptions{Grace: -1})
		return Fail, "given up", nil
	}
	if p.Err() != nil {
		return Fail, "its interpreter " + p.Err().Error(), out.Tail(3)
	}
	version := strings.TrimSpace(out.String())
	if ready, why := toolenv.Ready(ctx, c.entry.Dir); !ready {
		return Warn, version + "; " + why, nil
	}
	return Pass, version, nil
}

// Bounds of what the checks read, in bytes.
const (
	maxProgram = 16 << 20
	maxFixture = 64 << 20 // an answer of a tool has no more
)

// fixture is a file in the folder reference: inputs, and the outputs that they
// are to give.
type fixture struct {
	Inputs  json.RawMessage `json:"inputs"`
	Outputs json.RawMessage `json:"outputs"`
}

// fixtures are the files of reference by name.
func fixtures(dir string) ([]string, error) {
	names, err := os.ReadDir(filepath.Join(dir, "reference"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []string
	for _, n := range names {
		if !n.IsDir() && filepath.Ext(n.Name()) == ".json" {
			files = append(files, n.Name())
		}
	}
	slices.Sort(files)
	return files, nil
}

// sampleLimit is how long a run of the validator may take.
func (c *checker) sampleLimit() time.Duration {
	t := c.entry.Tool
	if t.ValidatorTimeoutOverride != nil {
		return time.Duration(*t.ValidatorTimeoutOverride) * time.Second
	}
	return time.Duration(t.MaxRuntimeSeconds)*time.Second + runMargin
}

// call makes one run.
func (c *checker) call(ctx context.Context, inputs json.RawMessage, limit time.Duration, emit func(messages.ToolEvent) error) toolproc.Answer {
	caller := ctx
	ctx, cancel := context.WithTimeout(caller, limit)
	defer cancel()
	c.runs++
	id := fmt.Sprintf("validate-%d", c.runs)
	a := c.proc.Do(ctx, toolproc.Call{Run: id, Inputs: inputs, Dir: filepath.Join(c.temp, id), Emit: emit})
	if ctx.Err() != nil && caller.Err() == nil && a.Error != nil {
		a.Error.Message = fmt.Sprintf("the run did not end within %v", limit)
	}
	return a
}
