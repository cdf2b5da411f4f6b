package vitals

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/machine"
	"github.com/coppice-run/coppice/messages"
)

// Bounds of what is kept.
const (
	step        = 10 * time.Second
	keptSamples = int(time.Hour / step)
	keptStories = 10_000
	keptMoments = 32
	keptTimes   = 4096 // durations of the calls of one step
	keptText    = 300  // characters of a reason or a prompt
	// patience bounds the wait for a look at the server.
	patience = 5 * time.Second
	// fresh is how long a look is shown to those who ask next.
	fresh = time.Second
)

// Source is where a look at the server comes from.
type Source struct {
	// Sessions lists the sessions that have a kernel. Required.
	Sessions func(context.Context) ([]client.Session, error)
	// Tree is the supervision tree. Required.
	Tree func(context.Context) (messages.Node, error)
	// Hibernated is how many sessions are kept on disk. nil: none.
	Hibernated func(context.Context) int
	// MaxSessions is how many sessions may live at once. 0: any number.
	MaxSessions int
	// Fork says that sessions can be copied.
	Fork bool
}

// Vitals are those of one server. Make them with New; any goroutine may use them.
type Vitals struct {
	mu      sync.Mutex
	stories map[string]*story     // by the id of the session; guarded by mu
	calls   map[string]*question  // by the id of the call; guarded by mu
	asking  map[string][]string   // the calls of a session that wait for a person; guarded by mu
	now     client.Sample         // of the step that is not over; guarded by mu
	times   []time.Duration       // of the calls that ended in it; guarded by mu
	ended   int                   // how many these stand for; guarded by mu
	samples []client.Sample       // guarded by mu
	last    uint64                // the number of the newest sample; guarded by mu
	refused refusals              // guarded by mu
	touch   uint64                // counts what happens to stories; guarded by mu
	cpu     map[string]cpuReading // of the step before; the sampler's own

	looking chan struct{} // holds one token while a look is made
	seen    look          // guarded by looking
	failed  error         // of the last look, nil: it went well; guarded by looking
	tried   time.Time     // when that ended; guarded by looking
	source  Source
	end     context.CancelFunc
	done    sync.WaitGroup
}

// look is the server at one instant.
type look struct {
	at       time.Time
	sessions []client.Session
	tree     messages.Node
	limits   client.Limits
	asleep   int
}

// New returns vitals that have heard of nothing yet.
func New() *Vitals {
	return &Vitals{
		stories: map[string]*story{}, calls: map[string]*question{}, asking: map[string][]string{},
		cpu: map[string]cpuReading{}, end: func() {}, looking: make(chan struct{}, 1),
	}
}

// Show takes samples from a source from now on, until Close. It is called once.
func (v *Vitals) Show(s Source) {
	ctx, cancel := context.WithCancel(context.Background())
	v.source, v.end = s, cancel
	v.done.Go(func() { // ends with ctx; Close joins it
		tick := time.NewTicker(step)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				v.sample(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// Close ends the sampling and returns when it has ended.
func (v *Vitals) Close() {
	v.end()
	v.done.Wait()
}

// Overview is how the server is, with the samples after a number.
func (v *Vitals) Overview(ctx context.Context, after uint64) (client.Overview, error) {
	seen, err := v.look(ctx, fresh)
	if err != nil {
		return client.Overview{}, err
	}
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	o := client.Overview{At: now, StepSeconds: step.Seconds(), Newest: v.last, Samples: []client.Sample{}, Limits: seen.limits, Hibernated: seen.asleep, Marks: []client.Mark{}}
	for _, s := range v.samples {
		if s.Seq > after {
			o.Samples = append(o.Samples, s)
		}
	}
	o.Marks = append(o.Marks, v.marksLocked(seen.sessions, now)...)
	o.Problems, o.MoreProblems = problems(situation{now: now, seen: seen, marks: o.Marks, refused: v.refused.recent(now)})
	return o, nil
}

// Story is what became of a session.
func (v *Vitals) Story(key messages.SessionKey) client.Story {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := client.Story{Key: key, Moments: []client.Moment{}}
	if known := v.stories[key.ID()]; known != nil {
		s.Moments, s.Forgotten = append(s.Moments, known.moments...), known.forgotten
	}
	return s
}

// look asks the source, unless that was done a moment ago. Who comes while a look is made
// has what it finds, or why it failed: a look that fails takes all of its patience, and those
// who wait would otherwise do so one after another.
func (v *Vitals) look(ctx context.Context, old time.Duration) (look, error) {
	came := time.Now()
	select {
	case v.looking <- struct{}{}:
	case <-ctx.Done():
		return look{}, context.Cause(ctx)
	}
	defer func() { <-v.looking }()
	switch {
	case v.tried.After(came):
		return v.seen, v.failed
	case v.failed == nil && !v.tried.IsZero() && time.Since(v.seen.at) < old:
		return v.seen, nil
	}
	seen, err := v.see(ctx)
	if err != nil && ctx.Err() != nil { // who asked has gone, which says nothing to others
		return look{}, err
	}
	v.failed, v.tried = err, time.Now()
	if err == nil {
		v.seen = seen
	}
	return seen, err
}

// see looks at the source.
func (v *Vitals) see(ctx context.Context) (look, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sessions, err := v.source.Sessions(ctx)
	if err != nil {
		return look{}, err
	}
	tree, err := v.source.Tree(ctx)
	if err != nil {
		return look{}, err
	}
	limits := client.Limits{Sessions: v.source.MaxSessions, Memory: int64(machine.Look("").Memory), CPUs: runtime.NumCPU(), Fork: v.source.Fork}
	asleep := 0
	if v.source.Hibernated != nil {
		asleep = v.source.Hibernated(ctx)
	}
	return look{at: time.Now(), sessions: sessions, tree: tree, limits: limits, asleep: asleep}, nil
}

// keyOf is the key of a session.
func keyOf(s client.Session) messages.SessionKey {
	return messages.SessionKey{Session: s.Session, Cwd: s.Cwd, Workspace: s.Workspace, Kernel: s.Kernel}
}

// short cuts a text at a bound.
func short(text string) string {
	if r := []rune(text); len(r) > keptText {
		return string(r[:keptText-1]) + "…"
	}
	return text
}
