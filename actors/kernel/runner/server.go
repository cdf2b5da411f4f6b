package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/walls"
	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/forkserver"
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/machine"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// ServerOptions says which interpreter sessions run in. The zero value of a
// field is its default.
type ServerOptions struct {
	// Home is ~/.<brand>, where the managed environment is.
	Home string
	// Python is the interpreter. "": look around.
	Python string
	// Found is the interpreter when somebody has just looked for it in the same
	// places. Only the first start uses it.
	Found *pyenv.Runtime
	// Env is the host's environment, unfiltered. nil: that of the process.
	Env []string
	// Preload names modules that are imported once for all sessions. nil:
	// DefaultPreload; empty: only what sessions need themselves.
	Preload []string
	// Prelude is the prelude of the backends that make sessions here, which the
	// fork server then runs once for all of them, so that they share it. It must
	// leave nothing open and start no threads. "": each session runs its own.
	Prelude string
	// Spares is how many sessions are forked ahead, so that a new one is ready at
	// once: a spare costs what an idle session does. They are of this interpreter
	// and this environment alone. While memory is low none are kept. 0: 2;
	// negative: none; at most MaxSpares.
	Spares int
	// LowMemory says whether memory is low. nil: less than a tenth of what the
	// machine, or the control group of this process, has is available.
	LowMemory func() bool
	// NoFork starts an interpreter for each session, in 50 ms instead of 2.
	NoFork bool
	// Isolation says what sessions are kept from.
	Isolation kernel.Isolation
	// Limits bound what each session uses.
	Limits kernel.Limits
	// groupBase is the control group under which those of sessions are made, which
	// they then get in any case. "": that of this process, for limits.
	groupBase string
	// Trace is where the messages of sessions are noted. nil: nowhere.
	Trace *ipctrace.File
	// Owner owns the fork server and all that its sessions start. nil: nothing does.
	Owner *process.Owner
	// Mark is what sessions with users of their own, and what they start, are known by. 0: nothing.
	Mark process.Mark
	// Start bounds the start of the fork server; see [forkserver.Options].
	Start opportunity.Budget
	// Keep has sessions outlive the host. nil: they end with it.
	Keep *KeepOptions
}

// DefaultPreload is what sessions are likely to import and what is in every
// standard library: asyncio alone saves the first await 30 ms.
var DefaultPreload = []string{
	"asyncio", "base64", "collections", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "enum",
	"functools", "getpass", "glob", "hashlib", "inspect", "io", "itertools", "json", "logging", "math", "os", "pathlib",
	"pprint", "random", "re", "shlex", "shutil", "statistics", "string", "subprocess", "tempfile", "textwrap", "time",
	"traceback", "typing", "urllib.parse", "uuid",
}

// Server owns the fork server of a backend. Run is called by one goroutine at a
// time, the other methods by any.
type Server struct {
	o      ServerOptions // Found belongs to Run
	served pyenv.Known   // the interpreter of a fork server that was up; belongs to Run
	doubt  bool          // what was remembered of it was of no use; belongs to Run
	copies copies
	keep   *keeper // nil: sessions end with their host

	places *kernel.Availability[*place]

	mu    sync.Mutex
	trees []*cgroup.Tree // what Close removes

	users   walls.Pool    // of sessions and programs; Close gives them back
	folders walls.Folders // of confined sessions and programs; Close removes them
	egress  walls.Egress  // of theirs; Close closes it
}

// MaxSpares is how many sessions a server forks ahead at most.
const MaxSpares = 64

// NewServer returns a server that is not running yet.
func NewServer(o ServerOptions) *Server {
	if o.Preload == nil {
		o.Preload = DefaultPreload
	}
	o.Preload = slices.Clone(o.Preload)
	switch {
	case o.Spares == 0:
		o.Spares = 2
	case o.Spares < 0:
		o.Spares = 0
	}
	o.Spares = min(o.Spares, MaxSpares)
	if o.LowMemory == nil {
		o.LowMemory = lowMemory()
	}
	return &Server{o: o, keep: newKeeper(o.Keep), places: kernel.NewAvailability[*place]("the fork server")}
}

// Forks reports whether sessions are forked from a warm interpreter, and if not,
// why each has one started for it, which takes 50 ms in place of 2. It waits while
// the server starts; the error is why it could not.
func (s *Server) Forks(ctx context.Context) (forks bool, why string, err error) {
	p, err := s.places.Await(ctx, nil, nil)
	if err != nil {
		return false, "", err
	}
	return p.spawn == nil, p.why, nil
}

var errStopped = errors.New("the fork server is stopped")

// Run starts the fork server, calls up, and returns when it has ended: nil when
// ctx did. Sessions that live then go on; when it is asked to stop, it waits a
// little for those that are about to end.
func (s *Server) Run(ctx context.Context, up func(pid int)) error {
	s.places.Begin()
	s.copies.open()
	err := s.run(ctx, up)
	if ctx.Err() != nil {
		s.copies.close()
		s.places.Close(errStopped)
		return nil
	}
	s.places.Ended(err)
	return err
}

// Bounds of the end of a fork server.
const (
	// emptyWait is how long it waits for its sessions to end, so that their exit
	// status is known.
	emptyWait = 2 * time.Second
	closeWait = 6 * time.Second
	closeMost = 30 * time.Second // on a machine that has no processor for it
)

// refillDelay keeps the fork of a new spare out of the way of the session that
// took the last one, and of others that come with it.
const refillDelay = 3 * time.Millisecond

// memoryEvery is how often a server looks whether memory is low.
const memoryEvery = 5 * time.Second

// memoryGood is how long an answer about memory is good: a look costs a part of what a fork does,
// and what is forked in that time fits into the tenth.
const memoryGood = 20 * time.Millisecond

// lowMemory says whether less than a tenth of the memory is available. Where the
// system does not tell, it is not low. One goroutine may ask.
func lowMemory() func() bool {
	const tenth = 10
	var at time.Time
	low := false
	return func() bool {
		if now := time.Now(); at.IsZero() || now.Sub(at) > memoryGood {
			all, available := machine.Memory()
			at, low = now, all > 0 && available < all/tenth
		}
		return low
	}
}

// Spares returns how many sessions wait that were forked ahead. They are not in
// the tree.
func (s *Server) Spares() int {
	p, ok := s.places.Now()
	if !ok {
		return 0
	}
	return len(p.spares)
}

// Brood returns the fork server, and the copies of sessions that wait to be taken.
func (s *Server) Brood() (from process.Identity, waiting []int) {
	if p, ok := s.places.Now(); ok && p.server != nil {
		from = p.server.Identity()
	}
	return from, s.copies.pids()
}

func (s *Server) run(ctx context.Context, up func(pid int)) error {
	rt, err := s.resolve(ctx)
	if err != nil {
		return err
	}
	s.o.Owner.Use(rt.Path)
	known := pyenv.Know(rt)
	rules, env, err := s.confined(rt)
	if err != nil {
		return err
	}
	o := forkserver.Options{Python: rt.Path, Env: env, Preload: s.o.Preload, Prelude: s.o.Prelude, Rules: rules, Start: s.o.Start, Owner: s.o.Owner, Code: s.kept()}
	groups, noGroups := s.openGroups(ctx, rules) // before the fork server, which is to stand where the host does
	pool, err := s.openUsers(ctx, rt.Path, rules)
	if err != nil {
		return fmt.Errorf("give the sessions users of their own: %w", err)
	}
	p := &place{tracer: s.o.Trace, rules: rules, groups: groups, noGroups: noGroups, users: pool}
	if s.o.NoFork {
		return s.withoutFork(ctx, p, o, "it was asked for", up)
	}
	s.keep.begin(ctx, &o)
	server, err := forkserver.Launch(ctx, o)
	if errors.Is(err, forkserver.ErrNoFork) {
		return s.withoutFork(ctx, p, o, err.Error(), up)
	}
	if err != nil {
		s.doubt = rt.Recalled // it may not be what it was
		return err
	}
	defer func() {
		c, done := opportunity.Within(context.WithoutCancel(ctx), opportunity.Budget{Opportunity: closeWait, Ceiling: closeMost}, server.Subject())
		defer done()
		_ = server.Close(c) // it is killed; what survives that cannot be helped
	}()
	p.server, p.spares, p.taken = server, make(chan *Interpreter, s.o.Spares), make(chan struct{}, s.o.Spares)
	defer p.close()
	s.served = known
	s.places.There(p)
	up(server.PID())
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	look := time.NewTicker(memoryEvery)
	defer look.Stop()
	warm := server.Warm()
	for missing := 0; ; {
		select {
		case <-warm: // spares that are forked now share what the server has done
			warm = nil
			missing = p.keep(s.o.Spares, s.o.LowMemory())
		case <-p.taken:
			missing++
			quiet.Reset(refillDelay)
		case <-quiet.C:
			if warm == nil && missing > 0 {
				missing = p.keep(missing, s.o.LowMemory())
			}
		case <-look.C:
			if warm == nil && s.o.Spares > 0 {
				missing = p.keep(missing, s.o.LowMemory())
			}
		case <-server.Done():
			return server.Err()
		case <-ctx.Done():
			s.places.Close(errStopped)
			p.close()
			if s.keep.isLeaving() {
				return nil // those that are left do not end
			}
			c, cancel := context.WithTimeout(context.WithoutCancel(ctx), emptyWait)
			defer cancel()
			server.Empty(c)
			return nil
		}
	}
}

// openUsers prepares users for the sessions under rules that have any.
func (s *Server) openUsers(ctx context.Context, python string, rules sandbox.Rules) (*userPool, error) {
	if !rules.Users {
		return nil, nil //nolint:nilnil // sessions without users of their own are as good
	}
	temp, err := s.folders.Temporary()
	if err != nil {
		return nil, err
	}
	all, err := s.users.Open(ctx, python, temp, rules)
	if err != nil {
		return nil, err
	}
	return &userPool{all, s.o.Mark}, nil
}

// resolve finds the interpreter. One that has served is taken again, whatever a look
// would meet just now, for as long as its file is the same.
func (s *Server) resolve(ctx context.Context) (pyenv.Runtime, error) {
	if found := s.o.Found; found != nil {
		s.o.Found = nil
		return *found, nil
	}
	if rt, ok := s.served.Recall(); ok {
		return rt, nil
	}
	o := pyenv.Options{Python: s.o.Python, Home: s.o.Home, Env: s.o.Env, Memory: s.kept(), Fresh: s.doubt}
	s.doubt = false
	return pyenv.Resolve(ctx, o)
}

// kept is the directory of what one start leaves for the next, "" without a home.
func (s *Server) kept() string {
	if s.o.Home == "" {
		return ""
	}
	return pyenv.MemoryDir(s.o.Home)
}

// withoutFork serves where an interpreter is started for each session.
func (s *Server) withoutFork(ctx context.Context, p *place, o forkserver.Options, why string, up func(pid int)) error {
	p.spawn, p.why = &o, why
	s.places.There(p)
	up(0)
	<-ctx.Done()
	return nil
}
