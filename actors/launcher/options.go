package launcher

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/toolbox"
	"github.com/coppice-run/coppice/messages"
)

// ErrOptions is matched by every error about Options.
var ErrOptions = errors.New("invalid launcher options")

// Options makes a [Launcher]. The zero value of each field is its default.
type Options struct {
	// Dir is the folder of tools: each folder in it that has a tool.json is one.
	// "": COPPICE_TOOLS from Env, else <Home>/.<Brand>/tools.
	Dir string
	// Brand names the folder of the user's files: <Home>/.<Brand>. "": coppice.
	Brand string
	// Home is the folder that holds it. "": COPPICE_HOME from Env, else the user's
	// home directory.
	Home string
	// Env is the environment of the host. Of it, tools see only PATH and a few more
	// names that hold no secret. nil: that of this process.
	Env []string
	// WarmMax is how many tools may be warm at once; for one more, the least
	// recently used idle one that is not pinned is ended. 0: 5.
	WarmMax int
	// MemoryBudgetMB bounds the sum of max_memory_mb over the warm tools. 0:
	// nothing does.
	MemoryBudgetMB int
	// Heartbeat is how often an idle tool is asked whether it is well. 0: 5 s.
	Heartbeat time.Duration
	// StartTimeout bounds the start of a tool: how long it may have had the chance to
	// become ready, without what it waited for a processor. 0: 60 s. A start takes no
	// longer than five times that.
	StartTimeout time.Duration
	// StopGrace is what a tool gets between the request to end and force, without what it
	// waits for a processor, and six times that in all. 0: 5 s.
	StopGrace time.Duration
	// CancelGrace is what a run gets to end when it was cancelled or its time was up.
	// In the last second of it, or the last half if that is less, its tool is asked
	// to end, and then killed: a run takes no longer than its limit and the grace, unless
	// its tool has no processor to end with.
	// 0: 5 s.
	CancelGrace time.Duration
	// MaxParallel is how many runs of one tool go on at once; more wait. 0: 64.
	MaxParallel int
	// MaxWaiting is how many runs of one tool may wait; more are refused. 0: 1024.
	MaxWaiting int
	// MaxOpenFiles bounds the files and connections that one process of a tool has open
	// at once, on Linux; max_open_files of its tool.json may be lower. Nothing bounds
	// the processor time of tools, but for what one run gets: max_runtime_seconds, by
	// the clock on the wall. 0: what tool.json says, else the limit of the host.
	MaxOpenFiles int
	// ArtifactBytes and ArtifactFiles bound what one run may write to its folder
	// for files. 0: 10 GiB and 10,000.
	ArtifactBytes int64
	ArtifactFiles int
	// Artifacts is the folder that holds the folders for files. "":
	// <Home>/.<Brand>/tool-runs.
	Artifacts string
	// Logger hears what the launcher gives up on, of drift, and of a cancel that a
	// tool did not take. nil: nothing is logged.
	Logger *slog.Logger
	// OnEvent hears what happens in the tree; see [Launcher.Watch]. nil: it is not
	// called.
	OnEvent func(messages.Lifecycle)
}

// FromEnv fills in what the environment knows and o leaves out: Env and Home, the
// Brand that goes with them, and Dir when COPPICE_TOOLS has it. Relative folders
// become absolute ones. The error matches [ErrOptions] when the brand is not a plain
// name, or when there is no home directory.
func (o Options) FromEnv() (Options, error) {
	place, err := home.Home{Brand: o.Brand, Path: o.Home, Env: o.Env}.Resolve()
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	o.Brand, o.Home, o.Env = place.Brand, place.Path, place.Env
	if o.Dir == "" {
		o.Dir = home.Lookup(o.Env, "COPPICE_TOOLS")
	}
	for what, dir := range map[string]*string{"home": &o.Home, "the folder of tools": &o.Dir, "the folder for files": &o.Artifacts} {
		if *dir == "" {
			continue // of the last two, a default below the home
		}
		if *dir, err = filepath.Abs(*dir); err != nil {
			return o, fmt.Errorf("%w: %s: %w", ErrOptions, what, err)
		}
	}
	return o, nil
}

// WithDefaults gives every field that is zero its default, but for those that only
// the environment knows (Env and Home, and the folders when there is no Home); see
// [Options.FromEnv].
func (o Options) WithDefaults() Options {
	o.Brand = either(o.Brand, home.DefaultBrand)
	if o.Home != "" {
		o.Dir = either(o.Dir, o.place().Join("tools"))
		o.Artifacts = either(o.Artifacts, o.place().Join("tool-runs"))
	}
	o.WarmMax = either(o.WarmMax, 5)
	o.Heartbeat = either(o.Heartbeat, 5*time.Second)
	o.StartTimeout = either(o.StartTimeout, time.Minute)
	o.StopGrace = either(o.StopGrace, 5*time.Second)
	o.CancelGrace = either(o.CancelGrace, 5*time.Second)
	o.MaxParallel = either(o.MaxParallel, 64)
	o.MaxWaiting = either(o.MaxWaiting, 1024)
	o.ArtifactBytes = either(o.ArtifactBytes, 10<<30)
	o.ArtifactFiles = either(o.ArtifactFiles, 10_000)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func either[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Validate returns what is wrong with o, an error that matches [ErrOptions]. It wants
// the folders to be named, so options that lean on the environment are asked for it
// first.
func (o Options) Validate() error {
	for name, n := range map[string]int64{
		"WarmMax": int64(o.WarmMax), "MemoryBudgetMB": int64(o.MemoryBudgetMB), "MaxParallel": int64(o.MaxParallel), "MaxOpenFiles": int64(o.MaxOpenFiles), "MaxWaiting": int64(o.MaxWaiting),
		"ArtifactBytes": o.ArtifactBytes, "ArtifactFiles": int64(o.ArtifactFiles), "Heartbeat": int64(o.Heartbeat),
		"StartTimeout": int64(o.StartTimeout), "StopGrace": int64(o.StopGrace), "CancelGrace": int64(o.CancelGrace),
	} {
		if n < 0 {
			return fmt.Errorf("%w: %s is negative; use 0 for the default", ErrOptions, name)
		}
	}
	for what, dir := range map[string]string{"the folder of tools": o.Dir, "the folder for files": o.Artifacts} {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("%w: %s, %q, is not an absolute path", ErrOptions, what, dir)
		}
	}
	return nil
}

// open settles the options and opens their folder.
func (o Options) open() (Options, *toolbox.Box, error) {
	o, err := o.FromEnv()
	if err != nil {
		return o, nil, err
	}
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return o, nil, err
	}
	box, err := toolbox.Open(toolbox.Options{Dir: o.Dir, Env: o.Env, Artifacts: o.Artifacts, Cache: o.place().Join("cache"), StartTimeout: o.StartTimeout, MaxOpenFiles: o.MaxOpenFiles})
	if err != nil {
		return o, nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return o, box, nil
}

func (o Options) place() home.Home { return home.Home{Brand: o.Brand, Path: o.Home, Env: o.Env} }
