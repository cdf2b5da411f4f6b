package toolproc

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/toolspec"
)

//go:embed keeper.py
var keeperScript string

// keeper ends what tools have started when this process is killed: a tool itself dies
// then, its children do not. It is one small process of Python for all tools, which
// learns of the end of this one by the end of a pipe, and runs while a tool does.
type keeper struct {
	mu   sync.Mutex
	told map[string]string // guarded by mu: what it has to know, by token
	proc *process.Process  // guarded by mu: nil while none runs
	pipe *os.File          // guarded by mu
}

// theKeeper is that of all tools of this process.
var theKeeper = keeper{told: map[string]string{}}

// keeperEnd is what a keeper without tools gets to end.
const keeperEnd = 5 * time.Second

// watch has the keeper know of a tool: before it starts, so that nothing is missed, and
// again, with its id, when it has. python runs the keeper when none does. A host whose
// keeper cannot be started has tools all the same.
func (k *keeper) watch(python, token string, id process.Identity) {
	line := "+ " + token
	if start, _, ok := strings.Cut(id.Start, "@"); ok {
		line += fmt.Sprintf(" %d %s", id.PID, start)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told[token] = line + "\n"
	if k.proc != nil {
		if _, err := k.pipe.WriteString(line + "\n"); err == nil {
			return
		}
		k.drop() // somebody has ended it
	}
	k.start(python)
}

// start begins a keeper that knows all. The caller holds mu.
func (k *keeper) start(python string) {
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	defer func() { _ = r.Close() }()
	// Of its own session, and with nothing of the environment: it outlives this process.
	proc, err := process.Start(process.Options{Path: python, Args: []string{"-I", "-S", "-c", keeperScript}, Dir: "/", Stdin: r, OutliveHost: true})
	if err != nil {
		_ = w.Close()
		return
	}
	k.proc, k.pipe = proc, w
	for _, line := range k.told {
		if _, err := w.WriteString(line); err != nil {
			return // it has ended; the next tool tries again
		}
	}
}

// forget takes back what watch has said, when nothing of the tool is left. With the last
// tool the keeper ends.
func (k *keeper) forget(token string) {
	k.mu.Lock()
	delete(k.told, token)
	proc, pipe := k.proc, k.pipe
	if proc == nil {
		k.mu.Unlock()
		return
	}
	_, _ = pipe.WriteString("- " + token + "\n") // if it has ended it knows nothing any more
	if len(k.told) > 0 {
		k.mu.Unlock()
		return
	}
	k.proc, k.pipe = nil, nil
	k.mu.Unlock()
	endKeeper(proc, pipe)
}

// drop forgets a keeper that has ended. The caller holds mu.
func (k *keeper) drop() {
	proc, pipe := k.proc, k.pipe
	k.proc, k.pipe = nil, nil
	endKeeper(proc, pipe)
}

func endKeeper(proc *process.Process, pipe *os.File) {
	_ = pipe.Close()
	timer := time.NewTimer(keeperEnd)
	defer timer.Stop()
	select {
	case <-proc.Done():
	case <-timer.C:
		_ = proc.Stop(context.Background(), process.StopOptions{Grace: -1}) // it has nothing to do any more
	}
}

const (
	sweepMost  = 2 * time.Second // for what a tool has left
	sweepAgain = 3               // looks, while something is found
)

// sweep ends what a tool that has ended has left: processes with its token in their
// environment, whatever session they are in, and those that are known.
func sweep(ctx context.Context, token string, known []process.Identity) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepMost)
	defer cancel()
	for range sweepAgain {
		known = append(known, holders(token)...)
		if len(known) == 0 {
			return
		}
		known = process.KillAll(ctx, known)
	}
}

// holders are the processes of this user that have a token in their environment.
func holders(token string) []process.Identity {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	mark := []byte(toolspec.VarToken + "=" + token)
	var found []process.Identity
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		id, err := process.Identify(pid) // before the look, so that it is of the same one
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", name.Name(), "environ"))
		if err == nil && holds(env, mark) {
			found = append(found, id)
		}
	}
	return found
}

func holds(env, mark []byte) bool {
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(v, mark) {
			return true
		}
	}
	return false
}
