package jupyter

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/walls"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pysrc"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/messages"
)

// NoticeCwd is the code of a notice: the session's working directory does not
// exist on the machine of an external server's kernel.
const NoticeCwd = "no-such-directory"

// Name is the backend's name in results and in the tree.
const Name = "gateway"

const defaultKernel = "python3"

// Options makes a backend. The zero value of a field is its default.
type Options struct {
	// Server is where kernels are made. Required.
	Server *Server
	// KernelName is the kernelspec. "": python3.
	KernelName string
	// Journal is the folder in which sessions are journalled, so that a later host
	// finds their kernels; see package sharedgateway. It works with a shared server
	// alone. "": sessions end with their host.
	Journal string
	// KeepFor is how long those sessions live without a host. 0: as long as the gateway says of
	// sessions that are not used.
	KeepFor time.Duration
	// Record has what the calls of those sessions come to be written down, for hosts of the same
	// Name: they go on there. false: the sessions go on, and not their calls.
	Record bool
	Name   string
	// Warn hears what people should know of sessions that are not taken over. nil: nobody.
	Warn func(text string, args ...any)
	// Helpers is the MIME type of the status events of the helpers that every new
	// kernel of Python has. "": no helpers.
	Helpers string
	// Modules returns the source that loads the modules of a session in a working
	// directory, which needs the helpers. "": it has no modules. It is
	// called for each session, from any goroutine. nil: no session has modules.
	Modules func(cwd string) string
	// Files is how many files the code of a kernel of Python may have open, with those that it
	// starts as many each. 0: as many as the system says.
	Files int
}

// Backend makes kernels on one server. Any goroutine may use it.
type Backend struct {
	o     Options
	turns kernel.Turns // of those that are started cold on this machine
	heirs heirs
}

// New returns a backend.
func New(o Options) *Backend {
	if o.KernelName == "" {
		o.KernelName = defaultKernel
	}
	if o.Warn == nil {
		o.Warn = func(string, ...any) {}
	}
	return &Backend{o: o}
}

// Name returns "gateway".
func (b *Backend) Name() string { return Name }

// Start makes a kernel and prepares it.
func (b *Backend) Start(ctx context.Context, o kernel.StartOptions) (kernel.Interpreter, error) {
	progress := o.Progress
	if progress == nil {
		progress = func(string) {}
	}
	waiting := o.Waiting
	if waiting == nil {
		waiting = func(kernel.Waiting) {}
	}
	o.Progress, o.Waiting = progress, waiting
	for {
		server, err := b.o.Server.endpoint(ctx, o)
		if err != nil {
			return nil, err
		}
		if o.Key.Cwd != "" && !server.rules.Covers(o.Key.Cwd) {
			return nil, fmt.Errorf("start a kernel: %w", walls.Closed(o.Key.Cwd))
		}
		waiting(kernel.Waiting{Subject: server.subject()})
		i, err := b.startOn(ctx, server, o, progress)
		switch {
		case err == nil:
			return i, nil
		case ctx.Err() != nil:
			return nil, err
		case server.left(ctx), errors.Is(err, errOver):
		case server.died(ctx, err):
			select { // Run may still have to hear of it
			case <-time.After(diedPoll):
			case <-ctx.Done():
			}
		default:
			return nil, err
		}
	}
}

// diedPoll is how often a start looks whether it is known that its gateway is gone.
// diedWait is how much later than a connection its process may tell of that.
const (
	diedPoll = 20 * time.Millisecond
	diedWait = 300 * time.Millisecond
)

// died says whether the gateway of this machine is gone, so that a start has failed
// which another one may serve.
func (e *Endpoint) died(ctx context.Context, err error) bool {
	gateway := e.process()
	var unreachable *jupyter.UnreachableError
	var gone *kernel.LostError
	switch {
	case gateway.PID == 0:
		return false
	case !errors.As(err, &unreachable) && !errors.As(err, &gone):
		return process.Ended(gateway)
	}
	c, cancel := context.WithTimeout(ctx, diedWait)
	defer cancel()
	return process.Await(c, gateway) == nil
}

// startOn makes a kernel on one server.
func (b *Backend) startOn(ctx context.Context, server *Endpoint, o kernel.StartOptions, progress func(string)) (*Interpreter, error) {
	i := &Interpreter{server: server, files: b.o.Files, keepFor: b.o.KeepFor, records: b.o.Record, name: b.o.Name}
	var err error
	if b.o.Journal != "" && server.Shared != nil && !o.Once {
		progress("waiting for the session")
		i.leaving = &b.o.Server.leaving
		waits := b.heirs.claim(o.Key)
		if waits != nil {
			i.claim, i.heir = waits.claim, waits.last
		} else if i.claim, err = sharedgateway.Take(ctx, b.o.Journal, o.Key); err != nil {
			return nil, err
		}
		switch adopted, err := i.adopt(ctx, o, progress); {
		case err != nil && kernel.EndsForGood(ctx):
			forget(i.claim)
			return nil, err
		case err != nil && waits != nil:
			b.heirs.put(o.Key, waits) // another attempt may do
			return nil, err
		case err != nil:
			i.claim.Release()
			return nil, err
		case adopted:
			i.server.warm.begins()
			return i, nil
		}
	}
	modules := ""
	if b.o.Modules != nil && b.o.Helpers != "" {
		modules = b.o.Modules(o.Key.Cwd)
	}
	err = b.fill(ctx, i, o, modules, progress)
	if _, died := errors.AsType[*kernel.LostError](err); died && modules != "" && ctx.Err() == nil {
		left := err
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*time.Second)
		_ = i.kernel.Delete(c) // it is gone; the server's record of it may not be
		cancel()
		i.server.warm.gone()
		i.server.warm.answered(false) // fill begins another
		if i.server.Bridge != nil {
			i.server.Bridge.Unregister(i.calls.session)
		}
		if err = b.fill(ctx, i, o, "", progress); err == nil {
			i.notice.Store(kernel.ModulesLeftOut(left))
		}
	}
	if i.kernel == nil {
		i.release()
		return nil, fmt.Errorf("start a kernel: %w", b.explain(ctx, server, cmp.Or(o.Key.Kernel, b.o.KernelName), err))
	}
	if err != nil {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*time.Second)
		defer cancel()
		if closeErr := i.Close(c); closeErr != nil {
			err = errors.Join(err, closeErr)
		}
		return nil, err
	}
	return i, nil
}

// fill makes a kernel for i and prepares it. i.kernel is nil when that failed.
func (b *Backend) fill(ctx context.Context, i *Interpreter, o kernel.StartOptions, modules string, progress func(string)) (err error) {
	k, on, err := i.server.start(ctx, b.o.KernelName, cmp.Or(o.Key.Kernel, b.o.KernelName), &b.turns, o)
	if i.kernel = k; on != nil {
		i.server = on
	}
	if err != nil {
		i.kernel = nil
		return err
	}
	progress("preparing the kernel")
	return i.prepare(ctx, o, b.o.Helpers, modules)
}

// explain says why a kernel could not be created when the reason is its name:
// servers answer that with status 500, as they do with every failure.
func (b *Backend) explain(ctx context.Context, server *Endpoint, name string, err error) error {
	var status *jupyter.StatusError
	if !errors.As(err, &status) || status.Method != "POST" || status.Code < 500 {
		return err
	}
	specs, serr := server.Client.Kernelspecs(ctx)
	if _, known := specs.Specs[name]; serr != nil || known {
		return err
	}
	return &messages.UnknownKernelError{Name: name, Known: slices.Sorted(maps.Keys(specs.Specs))} // the status says nothing more
}

// prepare sets up the interpreter's process and learns who it is. Only Python
// has a working directory, an environment and helpers: what other kernels
// would run for it is not known.
func (i *Interpreter) prepare(ctx context.Context, o kernel.StartOptions, helpers, modules string) error {
	i.info.ID = i.kernel.ID()
	if i.python = i.kernel.Info().Language == "python"; !i.python {
		return nil
	}
	env, place := i.hostPlace(i.environment(o.Env))
	place.Cwd, place.Env, place.Remote, place.Helpers = o.Key.Cwd, env, !i.server.Local, helpers
	place.Files = i.files
	if i.server.Shared != nil {
		place.Keep = ours(env)
	}
	reply, err := i.begin(ctx, place)
	if err != nil {
		return fmt.Errorf("prepare the kernel's environment: %w", err)
	}
	i.learn(reply)
	if cwd, ok := stringExpression(reply, cwdExpression); ok && !i.server.Local && o.Key.Cwd != "" && cwd != o.Key.Cwd {
		i.notice.Store(&messages.Notice{Code: NoticeCwd, Text: fmt.Sprintf(
			"the directory %s does not exist where the kernel runs; its working directory is %s", o.Key.Cwd, cwd)})
	}
	if modules == "" {
		return nil
	}
	reply, err = i.silently(ctx, modules)
	if err != nil {
		return fmt.Errorf("load the modules: %w", err)
	}
	if told, _ := stringExpression(reply, modulesExpression); told != "" {
		text, err := hex.DecodeString(told)
		if err != nil {
			return fmt.Errorf("read which modules were loaded: %w", err)
		}
		i.notice.Store(kernel.ModulesFailed(string(text)))
	}
	return nil
}

// begin makes the kernel the one of its session. A gateway of ours has prepared its
// kernels for that, unless one of another version runs it; others bring nothing.
func (i *Interpreter) begin(ctx context.Context, s pysrc.KernelSession) (jupyter.ExecuteReply, error) {
	for _, full := range []bool{false, true} {
		if !full && !i.server.Local {
			continue
		}
		code, err := pysrc.KernelBegin(s, full)
		if err != nil {
			return jupyter.ExecuteReply{}, err
		}
		reply, err := i.silently(ctx, code)
		if full || !missing(reply) {
			return reply, err
		}
	}
	return jupyter.ExecuteReply{}, nil
}

// learn notes who the kernel is.
func (i *Interpreter) learn(reply jupyter.ExecuteReply) {
	if pid, ok := intExpression(reply, pidExpression); ok && i.server.rules.Inside() {
		i.within = pid
	} else if ok {
		i.info.PID = pid
		if i.server.Local {
			if id, err := process.Identify(pid); err == nil {
				i.identity = id
			}
		}
	}
	i.info.Python, _ = stringExpression(reply, pythonExpression)
	if replays, _ := stringExpression(reply, replayExpression); replays == "True" {
		i.kernel.EnableReplay()
	}
}

var _ kernel.Backend = (*Backend)(nil)
