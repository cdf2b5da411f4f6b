package kernelserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// Server is a running gateway. [Launch] makes it.
type Server struct {
	url    string
	token  string
	dir    private
	vars   []string
	walled bool // see Options.Rules
	proc   *process.Process
	main   process.Identity // of the gateway: below that of proc where bubblewrap is between
	output *process.Ring

	handed  *handed // how it is reached that has a kernel of its own; nil: by its port
	removed func()  // removes what its wall has kept for it; nil: nothing

	asked atomic.Bool // somebody asked for the end, which is then no failure

	// stopping serialises Stop; the first call does the work.
	stopping sync.Mutex
	stopped  bool  // guarded by stopping
	stopErr  error // guarded by stopping
}

// URL is "http://127.0.0.1:<port>", without a slash at the end. With port 0, which nobody can
// connect to, it takes the Dialer.
func (s *Server) URL() string { return s.url }

// Token is what requests must show, as "Authorization: token <t>".
func (s *Server) Token() string { return s.token }

// Dialer is what connects to it where no address does; nil: one does.
func (s *Server) Dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	if s.handed == nil {
		return nil
	}
	return s.handed.dial
}

// End ends a kernel by the number that it has in the kernel of its gateway, when that has one of
// its own. It does not wait for it.
func (s *Server) End(ctx context.Context, pid int) error {
	if s.handed == nil {
		return errors.ErrUnsupported
	}
	return s.handed.end(ctx, pid)
}

// Identity names the gateway's process, or what it runs in, when it has a kernel of its own.
func (s *Server) Identity() process.Identity { return s.main }

// Done is closed when the gateway has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.proc.Done() }

// Err returns nil while the gateway runs and after Stop, and an [*ExitedError]
// when it ended by itself. Stop is still needed then: it removes what is left.
func (s *Server) Err() error {
	select {
	case <-s.proc.Done():
	default:
		return nil
	}
	if s.asked.Load() {
		return nil
	}
	return &ExitedError{Tail: s.Tail(tailLines), Err: s.proc.Err()}
}

// Tail returns the last n lines that the gateway and its kernels printed,
// without the token.
func (s *Server) Tail(n int) []string {
	lines := s.output.Tail(n)
	for i, l := range lines {
		lines[i] = s.scrub(l)
	}
	return lines
}

// scrub takes the token out of a line.
func (s *Server) scrub(line string) string { return strings.ReplaceAll(line, s.token, "[token]") }

// RSS returns the resident memory of the gateway alone, in bytes.
func (s *Server) RSS() (int64, error) { return process.RSS(s.main.PID) }

// Calls is the path of a socket for the calls of kernels to their host: one that they can
// reach, and not replace. "": they can reach a port.
func (s *Server) Calls() string {
	switch {
	case !s.walled:
		return ""
	case s.handed != nil:
		return s.dir.within()
	}
	return s.dir.calls()
}

// KernelEnv returns the "env" object for the POST of one kernel; see the
// package comment. Of extra it takes KERNEL_* and the names in
// Options.KernelVars, which are all that the gateway passes on: anything else
// must be set in the kernel itself. It is never nil.
func (s *Server) KernelEnv(extra map[string]string) map[string]string {
	env := maps.Clone(extra)
	if env == nil {
		env = make(map[string]string)
	}
	maps.DeleteFunc(env, func(name, _ string) bool {
		return !strings.HasPrefix(name, "KERNEL_") && !slices.Contains(s.vars, name)
	})
	return env
}

// String names the server without its token.
func (s *Server) String() string {
	return fmt.Sprintf("kernel gateway %d at %s", s.main.PID, s.url)
}

// GoString is String, so that no format shows the token.
func (s *Server) GoString() string { return s.String() }

// Stop ends the gateway and its kernels and removes their private directory:
// the gateway is asked to end, after 2 s it and whatever is left of its kernels
// is killed. The end of ctx cuts the 2 s short. The error is a
// [*process.NotEndedError] or says what could not be removed. Stop may be
// called again, and by several callers.
func (s *Server) Stop(ctx context.Context) error { return s.stop(ctx, stopGrace) }

func (s *Server) stop(ctx context.Context, grace time.Duration) error {
	s.asked.Store(true)
	s.stopping.Lock()
	defer s.stopping.Unlock()
	if s.stopped {
		return s.stopErr
	}
	s.stopped = true
	// Kernels lead sessions of their own. Whose children they are is known only
	// while the gateway lives.
	kernels := s.family()
	err := s.proc.Stop(ctx, process.StopOptions{Grace: grace})
	// And some may have started since. They carry the private directory in their
	// command line.
	kernels = append(kernels, s.family()...)
	if left := opportunity.KillAll(ctx, kernels); len(left) > 0 {
		stuck := &process.NotEndedError{}
		for _, id := range left {
			stuck.PIDs = append(stuck.PIDs, id.PID)
		}
		err = errors.Join(err, stuck)
	}
	s.stopErr = errors.Join(err, s.remove())
	return s.stopErr
}

// remove removes what there was for it, when it has ended.
func (s *Server) remove() error {
	s.handed.close()
	if s.removed != nil {
		s.removed()
	}
	return s.dir.remove()
}

// family lists the processes below the gateway, and kernels that lost it. Where
// the system does not tell, the list is empty and kernels end by themselves.
func (s *Server) family() []process.Identity {
	below, _ := process.Descendants(s.proc.Identity())
	orphans, _ := process.Holding(s.dir.script())
	return append(below, orphans...)
}
