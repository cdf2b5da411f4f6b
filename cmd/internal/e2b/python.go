package e2b

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/cmd/internal/e2b/envd"
	"github.com/coppice-run/coppice/environment"
)

// pythonAgain is after how long an interpreter that was not found is looked for again.
const pythonAgain = 5 * time.Second

// finder says where the interpreter of the sessions is, for the processes of sandboxes. The first
// process looks for it.
type finder struct {
	life context.Context // bounds a search: it goes on if the client leaves that has begun it
	o    coppice.Options // those of the host
	turn chan struct{}   // has room for one; whoever has put something there has what follows

	found envd.Python
	again time.Time // when it is looked for again, if it was not found
}

func newFinder(life context.Context, o coppice.Options) *finder {
	return &finder{life: life, o: o, turn: make(chan struct{}, 1)}
}

// python returns what is known; another process may be looking for it, until ctx ends.
func (f *finder) python(ctx context.Context) envd.Python {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return envd.Python{}
	}
	if f.found.Folder == "" && time.Now().After(f.again) {
		f.found, f.again = f.find(), time.Now().Add(pythonAgain)
	}
	return f.found
}

// find looks for the interpreter as the host does. The zero value: it is on another machine, or
// there is none, as code will be told.
func (f *finder) find() envd.Python {
	if b, ok := f.o.Backend.(kernel.Remote); ok && b.RemoteURL() != "" || runtime.GOOS != "linux" {
		return envd.Python{}
	}
	found, err := environment.Find(f.life, environment.Options{Brand: f.o.Brand, Home: f.o.Home, Python: f.o.Python, Env: f.o.Env})
	if err != nil {
		return envd.Python{}
	}
	p := envd.Python{Folder: filepath.Dir(found.Path), Venv: found.Venv}
	for _, kv := range f.o.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			p.Path = path
		}
	}
	return p
}
