package workspace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/file/own"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/workspace/files"
)

// Workspace is one workspace. [Set.Open] makes it.
type Workspace struct {
	set     *Set
	name    string
	o       Options // but for what may change
	made    time.Time
	folder  string
	own     *own.Folder // nil: the folder was given
	place   Place
	mark    process.Mark  // of all processes in it
	unclaim func()        // has its owner forget the mark
	group   *cgroup.Group // of all of them; nil: it has none
	kept    string        // what keeps to the limits of all in it; "": nothing does
	done    chan struct{} // closed when nothing of it is left
	once    sync.Once     // closes done

	discarded atomic.Bool // what was made for its kernels was removed, or is

	// gate is held for reading while something is begun in the workspace, and for
	// writing when it ends, so that what was begun is begun before the end.
	gate sync.RWMutex
	// grouping is held while what its group has met is looked at, until all of it is ended that
	// ends for it: what begins after that does not.
	grouping sync.Mutex
	// parting is held while what a kernel or a process has started is ended for a limit.
	parting sync.Mutex

	mu            sync.Mutex
	ended         *EndedError                            // guarded by mu and, for writing, gate
	guessed       bool                                   // of ended: another reason takes its place; guarded by mu
	labels        map[string]string                      // guarded by mu
	endAt         time.Time                              // guarded by mu
	idleEnd       time.Duration                          // guarded by mu
	pinned        bool                                   // guarded by mu
	uses          int                                    // what goes on in it; guarded by mu
	turn          uint64                                 // how often that became more than nothing; guarded by mu
	last          time.Time                              // when it was used last; guarded by mu
	self          supervisor.Ref                         // its supervisor; guarded by mu
	files         *files.Folder                          // nil until the folder is there; guarded by mu
	sessionsEnded supervisor.Reply[bool]                 // the gateway's word, once it was asked; guarded by mu
	asked         bool                                   // the gateway was, and nobody has waited for its word; guarded by mu
	procs         []*Process                             // those that run, and those that are remembered; guarded by mu
	procNext      uint64                                 // the number of the last one; guarded by mu
	procRun       int                                    // how many run; guarded by mu
	partNext      process.Part                           // the last one that was given out; guarded by mu
	kernels       map[int]root                           // by pid, where the workspace is looked at; guarded by mu
	inside        []func(messages.ResourceLimitExceeded) // how kernels without numbers are stopped; guarded by mu
	endings       []*ending                              // for limits, the newest last; guarded by mu
	used          Usage                                  // guarded by mu
	woken         func()                                 // has it looked at; nil: it is not; guarded by mu
	groupSaw      cgroup.Usage                           // what its group was seen to have met; guarded by mu
	disk          disk                                   // what its folder was seen to hold, where it has a quota; guarded by mu
}

// Info describes a workspace.
type Info struct {
	Name   string            `json:"name"`
	Folder string            `json:"folder"`
	Owner  string            `json:"owner,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Made   time.Time         `json:"made"`
	EndAt  time.Time         `json:"end_at,omitzero"`
	// IdleEnd is in nanoseconds in JSON, as all times of Go are.
	IdleEnd time.Duration `json:"idle_end,omitempty"`
	// Used is when it was used last, InUse how many calls and processes go on.
	Used   time.Time `json:"used"`
	InUse  int       `json:"in_use"`
	Pinned bool      `json:"pinned,omitempty"`
	Quota  int64     `json:"quota,omitempty"`
	// Isolation is the rung that its sessions are on, and what that does, in words.
	Isolation     string `json:"isolation,omitempty"`
	IsolationText string `json:"isolation_text,omitempty"`
	// Refused is the hosts of the network that were asked for and refused, where Isolation.Hosts
	// names those that may be reached; the newest last.
	Refused []kernel.Refusal `json:"refused,omitempty"`
	// Total is the limits of everything in it together, Kept what keeps to them, in
	// words ("": there are none), and Usage what there was when it was looked at, zero
	// where nothing has to be.
	Total Total  `json:"total,omitzero"`
	Kept  string `json:"total_kept,omitempty"`
	Usage Usage  `json:"usage,omitzero"`
	// Ended says why it has ended, "" while it has not.
	Ended Reason `json:"ended,omitempty"`
}

// Name returns its name.
func (w *Workspace) Name() string { return w.name }

// Folder returns its folder, absolute.
func (w *Workspace) Folder() string { return w.folder }

// Owner returns whom it belongs to, "" for no one.
func (w *Workspace) Owner() string { return w.o.Owner }

// Env returns the variables that everything in it has, beside those of the host.
func (w *Workspace) Env() map[string]string { return maps.Clone(w.o.Env) }

// Options returns those that it was made with; labels, the end time and the idle time are as
// they were then, see [Workspace.Info].
func (w *Workspace) Options() Options {
	o := w.o
	o.Env, o.Labels, o.Pass = maps.Clone(o.Env), maps.Clone(o.Labels), slices.Clone(o.Pass)
	return o
}

// Limits returns those that it was made with; zero: those of the host.
func (w *Workspace) Limits() kernel.Limits { return w.o.Limits }

// Total returns the limits of everything in it together.
func (w *Workspace) Total() Total { return w.o.Total }

// Backend returns what its kernels come from; nil: the host's own.
func (w *Workspace) Backend() kernel.Backend { return w.place.Backend }

// Info describes it as it is now.
func (w *Workspace) Info() Info {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := Info{
		Name: w.name, Folder: w.folder, Owner: w.o.Owner, Labels: maps.Clone(w.labels), Made: w.made, EndAt: w.endAt, IdleEnd: w.idleEnd,
		Used: w.last, InUse: w.uses, Pinned: w.pinned, Quota: w.o.Quota, Isolation: w.place.Rung, IsolationText: w.place.About,
		Total: w.o.Total, Kept: w.kept, Usage: w.used,
	}
	if w.ended != nil {
		i.Ended = w.ended.Reason
	}
	if o, ok := w.place.Backend.(kernel.Outlet); ok {
		i.Refused = o.Refused()
	}
	return i
}

// Done is closed when the workspace has ended and nothing of it is left.
func (w *Workspace) Done() <-chan struct{} { return w.done }

// Err returns nil, or why it has ended: an *[EndedError].
func (w *Workspace) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended == nil {
		return nil
	}
	return w.ended
}

// SetLifetime changes when it ends: at a time, zero for never, and after how long
// without use, 0 for never. A time that has passed ends it now. The error is an
// *EndedError, or an *OptionsError.
func (w *Workspace) SetLifetime(endAt time.Time, idleEnd time.Duration) error {
	if idleEnd < 0 {
		return &OptionsError{"idle_end", fmt.Sprintf("the idle time %v is negative; use 0 for none", idleEnd)}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return w.ended
	}
	w.endAt, w.idleEnd = endAt, idleEnd
	w.set.tell(retime{w})
	return nil
}

// SetLabels replaces its labels. The error is an *EndedError, or an *OptionsError.
func (w *Workspace) SetLabels(labels map[string]string) error {
	o, err := Options{Labels: labels}.settle()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return w.ended
	}
	w.labels = o.Labels
	return nil
}

// Pin spares it when another one needs a place, or ends that.
func (w *Workspace) Pin(ctx context.Context, on bool) error {
	if _, err := supervisor.Ask[bool](ctx, w.set.ref(), pin{w, on}); err != nil {
		return w.set.meaning(w, err)
	}
	return nil
}

// End ends it, and returns when nothing of it is left, or with ctx; it ends all the
// same then. One that has ended is no error.
func (w *Workspace) End(ctx context.Context) error {
	w.set.tell(end{w, ReasonAsked, "it was asked to end"})
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of the workspace %s: %w", w.name, context.Cause(ctx))
	}
}

// Files returns the files of its folder. The error is an *EndedError.
func (w *Workspace) Files() (*files.Folder, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return nil, w.ended
	}
	w.touch()
	return w.files, nil
}

// touch begins the idle time again. w.mu is held.
func (w *Workspace) touch() { w.last = time.Now() }

// Enter says that the workspace is in use until leave is called, once. The error is an
// *EndedError.
func (w *Workspace) Enter() (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return nil, w.ended
	}
	w.touch()
	w.uses++
	if w.uses == 1 {
		if w.woken != nil {
			w.woken()
		}
		w.turn++
		// Its supervisor is busy as long: no one takes its place. The answer is not waited for.
		_, _, _ = supervisor.Begin[bool](w.set.ref(), occupy{w, w.turn})
	}
	return sync.OnceFunc(w.leave), nil
}

func (w *Workspace) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touch()
	w.uses--
	if w.uses == 0 {
		w.self.Tell(release{w.turn})
		w.set.tell(retime{w})
	}
}

// Begin calls begin unless the workspace has ended; it does not end before begin has
// returned, which must not block. The error is an *EndedError, or that of begin.
func (w *Workspace) Begin(begin func() error) error {
	w.gate.RLock()
	defer w.gate.RUnlock()
	if err := w.Err(); err != nil {
		return err
	}
	return begin()
}

// close lets nothing begin from now on, and has the gateway end the sessions. It does
// not block: what holds the gate does not.
func (w *Workspace) close(r Reason, detail string) { w.closeAs(r, detail, false) }

// closeAs is close; guessed: whoever ends the workspace may not have said yet why, and
// its reason takes the place of this one.
func (w *Workspace) closeAs(r Reason, detail string, guessed bool) {
	w.gate.Lock()
	defer w.gate.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		if w.guessed && !guessed {
			w.ended, w.guessed = &EndedError{w.name, r, detail, w.ended.At}, false
		}
		return
	}
	w.guessed = guessed
	w.ended = &EndedError{w.name, r, detail, time.Now()}
	if _, reply, err := supervisor.Begin[bool](w.set.o.Sessions(), messages.EndWorkspace{Workspace: w.name, Reason: w.ended.Error()}); err == nil {
		w.sessionsEnded, w.asked = reply, true
	}
}

// due returns when it is to end by itself, zero for never, and why.
func (w *Workspace) due() (at time.Time, r Reason, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, r, detail = w.endAt, ReasonEndTime, "its end time "+w.endAt.Format(time.RFC3339)+" has come"
	if w.idleEnd > 0 && w.uses == 0 {
		if idle := w.last.Add(w.idleEnd); at.IsZero() || idle.Before(at) {
			at, r, detail = idle, ReasonIdle, fmt.Sprintf("it was not used for %v", w.idleEnd)
		}
	}
	return at, r, detail
}
