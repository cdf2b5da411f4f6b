package jupyter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/walls"
	"github.com/coppice-run/coppice/internal/bridge"
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/loopback"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sandbox"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/messages"
)

// ServerOptions says where kernels are made. The zero value of a field is its
// default.
type ServerOptions struct {
	// URL is a server that somebody else runs, Token opens it; several, which the
	// same token opens, have commas or white space between them. "": start one.
	URL, Token string

	// The other fields are for a server that is started.

	// Home is ~/.<brand>, where the managed environment is.
	Home string
	// Python is the interpreter. "": look around.
	Python string
	// Env is the host's environment, unfiltered. nil: that of the process.
	Env []string
	// HostCalls says that code in kernels may call functions of the host: an
	// endpoint for that is opened on the loopback interface. A server that
	// somebody else runs has it only when it is on this machine.
	HostCalls bool
	// Owner owns it and its kernels, and all that they start, unless it is shared. nil:
	// nothing does.
	Owner *process.Owner
	// Start bounds its start; see [kernelserver.Options].
	Start opportunity.Budget
	// Shared says to use the gateway that the hosts of this user share, and to
	// start that one when it is not there; see package sharedgateway. It does not
	// end with the host. false: one of the host's own, which does.
	Shared bool
	// Suspicion and IdleEnd are those of sharedgateway.Options, for a shared one, and
	// ShardKernels is its MaxKernels: when a shared gateway is full, sessions go on
	// to the next.
	Suspicion, IdleEnd time.Duration
	ShardKernels       int
	// Warm is how many started kernels wait for new sessions; they count in
	// MaxKernels, which must then be set. 0: none.
	Warm, MaxKernels int
	// WarmLazy starts none of them before a session has answered, and ends them
	// when no session has begun for WarmIdle. 0: they stay.
	WarmLazy bool
	WarmIdle time.Duration
	// NoFork spawns the kernels of a gateway that is started; see [HostOptions].
	NoFork bool
	// Isolation says what kernels, and the gateway that is started for them, are kept from;
	// its folders are absolute. It holds for a gateway of the host's own alone. "" as the
	// level: nothing.
	Isolation kernel.Isolation
	// Trace is where requests and messages are noted. nil: nowhere.
	Trace *ipctrace.File
	// SkipCheck takes it for granted that the interpreter has the packages.
	SkipCheck bool
	// KernelName is the kernelspec of those. "": python3.
	KernelName string
}

// Endpoint is a server that can be used.
type Endpoint struct {
	Client *jupyter.Client
	// Local says that its kernels are processes of this machine and ours.
	Local bool
	// Process is a gateway of this host's own; zero when it is not that.
	Process process.Identity
	// KernelEnv returns the environment to start a kernel with: what the
	// server wants and, of extra, what it lets through. It is never nil: a
	// server that gets none may use that of another request.
	KernelEnv func(extra map[string]string) map[string]string
	// Shared is the hold on a gateway that hosts share, nil when it is not. Env
	// is then what its kernels must have in their environment: the gateway's own
	// may be that of another host.
	Shared *sharedgateway.Lease
	Env    map[string]string
	// warm holds the started kernels, those of all shards; nil: no kernels are kept
	// warm.
	warm *pool
	// shards are the shared gateways of which it is one; nil: it is not.
	shards  *shards
	starts  int               // guarded by shards.mu: uses that go on
	kernels []*jupyter.Kernel // guarded by shards.mu: that it made for this host, or that were adopted
	// several says that it is one of several, gone that it does not answer then.
	several bool
	gone    atomic.Bool
	// rules confine the gateway and its kernels, when it is of this host, and end ends one of them
	// by its number where that is not one of this machine.
	rules sandbox.Rules
	end   func(ctx context.Context, pid int) error
	// Bridge takes the host calls of its kernels; nil: they cannot call the host.
	Bridge *bridge.Server
}

// subject is what an answer of the gateway takes.
func (e *Endpoint) subject() opportunity.Subject {
	if e.rules.Inside() { // the process is what its kernel runs in
		return opportunity.Tree(e.process())
	}
	return opportunity.Processes(e.process())
}

// process is the gateway's, zero when it is not of this machine.
func (e *Endpoint) process() process.Identity {
	if e.Shared != nil {
		return e.Shared.Process
	}
	return e.Process
}

// Server is what the kernels of a backend run on: a Jupyter Kernel Gateway that it
// starts, or one or several that are there already. Run is called by one goroutine at
// a time, Endpoint by any.
type Server struct {
	o      ServerOptions
	served pyenv.Known // the interpreter of a gateway that was up; belongs to Run
	// packages are those of it: they are looked at again when it could not be used.
	packages []pyenv.Package // belongs to Run

	folders walls.Folders // of what stands behind walls
	users   walls.Pool    // of gateways and of programs
	egress  walls.Egress  // likewise

	leaving atomic.Bool

	ends *kernel.Availability[[]*Endpoint] // never empty where they are there
}

// NewServer returns a server that is not running yet.
func NewServer(o ServerOptions) *Server {
	return &Server{o: o, ends: kernel.NewAvailability[[]*Endpoint]("the gateway")}
}

// Endpoint returns the server of a session when it can be used. It waits while
// the server starts, and while one is on its way back; see [kernel.Availability].
// Of several servers it is the session's own
// or, while that is gone, the next in the session's order; see place. Of shared
// gateways it is the first: where there is room for a kernel shows when it is asked
// for; see shards.
func (s *Server) Endpoint(ctx context.Context, key messages.SessionKey) (*Endpoint, error) {
	return s.endpoint(ctx, kernel.StartOptions{Key: key})
}

func (s *Server) endpoint(ctx context.Context, o kernel.StartOptions) (*Endpoint, error) {
	current, err := s.ends.Await(ctx, o.Progress, o.Waiting)
	switch {
	case err != nil:
		return nil, err
	case current[0].shards != nil:
		return current[0], nil
	default:
		return place(current, o.Key)
	}
}

// Leave says that the host ends: from now on, closing the interpreter of a session
// that is kept leaves its kernel to the next host. Any goroutine may call it.
func (s *Server) Leave() { s.leaving.Store(true) }

// Run starts the server, calls up, and returns when it has ended.
func (s *Server) Run(ctx context.Context, up func(pid int)) error {
	s.ends.Begin()
	err := s.run(ctx, up)
	if err == nil {
		s.ends.Close(errStopped)
		return nil
	}
	s.ends.Ended(err)
	return err
}

var errStopped = errors.New("the gateway is stopped")

func (s *Server) run(ctx context.Context, up func(pid int)) error {
	if s.o.URL != "" {
		return s.runExternal(ctx, up)
	}
	rt, ok := s.served.Recall() // whatever a look would meet just now
	if !ok {
		var err error
		s.packages = nil
		if rt, err = pyenv.Resolve(ctx, pyenv.Options{Python: s.o.Python, Home: s.o.Home, Env: s.o.Env}); err != nil {
			return stopped(ctx, err)
		}
	}
	s.o.Owner.Use(rt.Path)
	known := pyenv.Know(rt)
	return s.runOn(ctx, rt, func(pid int) {
		s.served = known
		up(pid)
	})
}

// runOn runs a gateway of an interpreter.
func (s *Server) runOn(ctx context.Context, rt pyenv.Runtime, up func(pid int)) (err error) {
	if s.o.Shared {
		return s.runShared(ctx, rt, up)
	}
	packages := s.packages
	s.packages = nil
	if packages == nil && !s.o.SkipCheck {
		if packages, err = pyenv.Preflight(ctx, rt); err != nil {
			return stopped(ctx, err)
		}
	}
	behind, err := confined(ctx, rt, s.o.Isolation, &s.folders, &s.egress, &s.users)
	if err != nil {
		return err
	}
	defer behind.over()
	server, err := kernelserver.Launch(ctx, kernelserver.Options{
		Runtime: rt, Env: behind.env, Rules: behind.rules, User: behind.process(), JupyterServer: pyenv.JupyterServerOnly(packages), Start: s.o.Start, Owner: s.o.Owner, Fork: !s.o.NoFork,
	})
	if err != nil {
		return stopped(ctx, err)
	}
	s.packages = packages // of an interpreter that is taken again
	defer func() {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverStop)
		defer cancel()
		_ = server.Stop(c) // it kills what does not end; what it could not end is dead or not ours
	}()
	client, err := jupyter.NewClient(jupyter.Options{URL: server.URL(), Token: server.Token(), Server: server.Identity(), Dial: server.Dialer(), Trace: s.trace()})
	if err != nil {
		return fmt.Errorf("use the gateway: %w", err)
	}
	defer client.Close()
	calls, closeBridge, err := s.openBridge(ctx, true, server.Calls(), behind.process(), server.Listener)
	if err != nil {
		return err
	}
	defer closeBridge()
	end := &Endpoint{Client: client, Local: true, Process: server.Identity(), KernelEnv: server.KernelEnv, Bridge: calls, rules: behind.rules, end: server.End}
	end.warm = s.pool(func(c context.Context, name string) (spare, error) {
		k, err := client.Start(c, jupyter.StartRequest{Name: name, Env: end.KernelEnv(nil)})
		return spare{k, end}, err
	})
	defer end.warm.keep(ctx)()
	s.ends.There([]*Endpoint{end})
	up(server.Identity().PID)
	select {
	case <-ctx.Done():
		s.ends.Close(errStopped)
		return nil
	case <-server.Done():
		client.ServerEnded()
		return fmt.Errorf("the gateway ended: %w", server.Err())
	}
}

// openBridge opens the endpoint of host calls, when there is to be one and
// kernels can reach it: on a port or, where path is not "", on a socket with that path, which is
// that of user. inside returns what accepts calls from a kernel of the gateway's own, which has that
// socket; nil, or what returns nil: it has none.
func (s *Server) openBridge(ctx context.Context, reachable bool, path string, user *process.User, inside func() net.Listener) (b *bridge.Server, end func(), err error) {
	if !s.o.HostCalls || !reachable {
		return nil, func() {}, nil
	}
	if inside != nil {
		if l := inside(); l != nil {
			b = bridge.On(l, "unix:"+path)
		}
	}
	if b == nil {
		if b, err = bridge.Start(ctx, path); err != nil {
			return nil, nil, err
		}
	}
	closed := func() {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = b.Close(c) // what does not end in time is cut off
	}
	if path != "" && user != nil {
		if err := os.Chown(path, user.UID, user.GID); err != nil {
			closed()
			return nil, nil, fmt.Errorf("open the calls of the host to user %d: %w", user.UID, err)
		}
	}
	return b, closed, nil
}

// onThisMachine says whether a URL's host is a loopback address.
func onThisMachine(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	return loopback.URL(u)
}

// serverStop bounds the end of a gateway.
const serverStop = 9 * time.Second

// stopped is nil when the end was asked for, else err.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
