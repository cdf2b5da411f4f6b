package toolproc

import (
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/toolspec"
)

// Options say which process to start. The zero value of a field is its default.
type Options struct {
	// Tool and Dir are what toolspec.Read returned. Required.
	Tool *toolspec.Tool
	Dir  string
	// Env is the environment of the host, of which a part is passed on.
	Env []string
	// Artifacts is the folder in which runs get folders for their files: they
	// are <Artifacts>/<tool>/<date>/<run>. "": runs get none.
	Artifacts string
	// Cache is a folder for what Python compiles. "": it compiles each time.
	Cache string
	// StartTimeout bounds the time until the tool is healthy: how long it, and what it has
	// started, may have had the chance to be. 0: 60 s. It is given up after five times that.
	StartTimeout time.Duration
	// Validate lets the tool know that this is only a check.
	Validate bool
	// NoMemoryLimit leaves max_memory_mb to whoever watches the process.
	NoMemoryLimit bool
	// MaxOpenFiles bounds the files that any tool has open at once; max_open_files of
	// the tool may be lower. 0: only that counts.
	MaxOpenFiles int
	// MaxBody bounds what is read of an answer, in bytes. 0: 64 MiB.
	MaxBody int64
}

// The rhythm of a start, and the bounds of small requests.
const (
	startTimeout  = time.Minute
	healthEvery   = 100 * time.Millisecond
	healthSoon    = 20 * time.Millisecond // during the first healthEager, in which most tools come up
	healthEager   = time.Second
	cancelTimeout = 5 * time.Second
	cancelAgain   = 20 * time.Millisecond // the first time, then twice as long
	cancelSeldom  = 500 * time.Millisecond
	dialTimeout   = 20 * time.Second // the system answers, for a tool that has no processor, too
	maxBody       = 64 << 20
	maxSmallBody  = 1 << 20
	maxDiffs      = 20
)

// How long a tool that has a processor may take for a small request: for GET /healthz,
// for GET /schema, and for POST /run when it streams.
var (
	healthBudget = budget(time.Second)
	schemaBudget = budget(30 * time.Second)
	beginBudget  = budget(30 * time.Second)
)

// budget is so much opportunity, and ten times that in all.
func budget(d time.Duration) opportunity.Budget {
	const most = 10
	return opportunity.Budget{Opportunity: d, Ceiling: most * d}
}

func (o Options) withDefaults() Options {
	if o.StartTimeout <= 0 {
		o.StartTimeout = startTimeout
	}
	if o.MaxBody <= 0 {
		o.MaxBody = maxBody
	}
	return o
}

// memoryBytes is the limit on the address space, 0 for none.
func (o Options) memoryBytes() uint64 {
	if o.NoMemoryLimit || o.Tool.MaxMemoryMB <= 0 {
		return 0
	}
	return uint64(o.Tool.MaxMemoryMB) << 20
}

// openFiles is the limit on open files, 0 for none.
func (o Options) openFiles() uint64 {
	own := max(0, o.Tool.MaxOpenFiles)
	if o.MaxOpenFiles > 0 && (own == 0 || o.MaxOpenFiles < own) {
		own = o.MaxOpenFiles
	}
	return uint64(own)
}
