package jupyter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/pysrc"
	"github.com/coppice-run/coppice/internal/sharedgateway"
)

// runShared uses the gateways that the hosts of this user share.
func (s *Server) runShared(ctx context.Context, rt pyenv.Runtime, up func(pid int)) error {
	calls, closeBridge, err := s.openBridge(ctx, true, "", nil, nil)
	if err != nil {
		return err
	}
	defer closeBridge()
	life, end := context.WithCancel(ctx)
	h := newShards(life, s, rt, calls)
	defer h.close()
	defer end()
	first, err := h.join(ctx, 0)
	if err != nil {
		return stopped(ctx, err)
	}
	defer h.warm.keep(ctx)()
	h.leave(first, nil)
	up(first.Shared.Process.PID)
	select {
	case <-ctx.Done():
		s.ends.Close(errStopped)
		return nil
	case err := <-h.last:
		return err
	}
}

// check says whether an interpreter can run a gateway.
func check(rt pyenv.Runtime) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := pyenv.Preflight(ctx, rt)
		return err
	}
}

// variables turns an environment list into a map.
func variables(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			m[name] = value
		}
	}
	return m
}

// environment is what a kernel must find in os.environ.
func (i *Interpreter) environment(own map[string]string) map[string]string {
	if i.server.Env == nil {
		return own
	}
	env := maps.Clone(i.server.Env)
	maps.Copy(env, own)
	return env
}

// ours names the variables of a kernel's environment that are about this host: the
// others of their kind are those of the host that started the gateway.
func ours(env map[string]string) []string {
	names := []string{}
	for name := range env {
		if strings.HasPrefix(name, "PI_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// missing notes that the journal names a kernel that is gone, which the first result tells.
func (i *Interpreter) missing(why string) error {
	i.info.Earlier, i.heir = why, nil
	return i.claim.Forget()
}

// adopt takes over the kernel that the journal names, if it is there. The
// session's own working directory and variables are left as they are: only what
// belongs to the host is new.
func (i *Interpreter) adopt(ctx context.Context, o kernel.StartOptions, progress func(string)) (bool, error) {
	e, ok := i.claim.Entry()
	if !ok {
		return false, nil
	}
	if process.Ended(e.Process) {
		return false, i.missing(goneMeanwhile)
	}
	on, err := i.server.shards.of(ctx, e)
	if err != nil {
		return false, err
	}
	if on == nil {
		return false, i.missing(goneWithGateway) // what it names is gone, or ends for want of a claim
	}
	progress("taking over the session's kernel")
	i.server = on
	runs := i.heir != nil && i.heir.Begun
	var k *jupyter.Kernel
	if runs {
		k, err = on.Client.Attach(ctx, e.Kernel, jupyter.Left{Request: i.heir.Ref, Seen: int64(i.heir.At.Frame), Comms: i.heir.Exec.Comms}, progress) //nolint:gosec // it was one
	} else {
		k, err = on.Client.Adopt(ctx, e.Kernel, progress)
	}
	on.shards.leave(on, k)
	var gone *jupyter.LostError
	switch {
	case errors.Is(err, jupyter.ErrNotFound), errors.As(err, &gone):
		return false, i.missing(goneMeanwhile)
	case err != nil:
		return false, err
	}
	i.kernel, i.info.ID, i.info.Kept, i.info.News = k, k.ID(), true, (*kernel.News)(e.News)
	if i.heir != nil {
		i.info.News = (*kernel.News)(i.heir.News)
	}
	i.news.Store(i.info.News)
	i.outlives.Store(true)
	if i.python = k.Info().Language == "python"; !i.python {
		return true, i.journal()
	}
	env, place := i.hostPlace(o.Env)
	code, err := pysrc.KernelCode(place.URL, place.Token, place.Session)
	if err == nil && runs { // the rest is done when that has ended
		i.late = envCode(env) + code
		i.info.PID, i.info.Python, i.identity = e.Process.PID, e.Python, e.Process
		i.openBook(e.Seal)
		err = i.journal()
	} else if err == nil {
		var reply jupyter.ExecuteReply
		if reply, err = i.silently(ctx, envCode(env)+code); err == nil {
			i.learn(reply)
			i.openBook(e.Seal)
			err = i.journal()
		}
	}
	if err != nil {
		i.closeBook()
		k.Detach()
		return false, fmt.Errorf("take over the session's kernel: %w", err)
	}
	return true, nil
}

// Outlive has the session outlive the host, from when it returns: until then, it has not all that
// it is to have.
func (i *Interpreter) Outlive(_ context.Context, _ []string, news *kernel.News) {
	if i.claim != nil && !i.outlives.Load() {
		i.news.Store(news)
		i.openBook(nil)
		i.outlives.Store(i.journal() == nil) // else no other host would find it
	}
}

// Told says that a result is about to tell how the session began: the next host does not.
func (i *Interpreter) Told() {
	if i.news.Swap(nil) != nil && i.outlives.Load() {
		_ = i.journal() // else it is told once more
	}
}

// Leaving reports whether Close leaves the kernel to the next host.
func (i *Interpreter) Leaving() bool {
	return i.claim != nil && i.outlives.Load() && i.leaving.Load() && !i.ends.Load()
}

// EndForGood has Close not leave the kernel to the next host.
func (i *Interpreter) EndForGood() { i.ends.Store(true) }

// journal notes where the session's variables are; nothing for a session that
// is not kept.
func (i *Interpreter) journal() error {
	if i.claim == nil {
		return nil
	}
	at := i.server.Shared
	return i.claim.Write(sharedgateway.Entry{
		Kernel: i.kernel.ID(), Gateway: at.Process, Fingerprint: at.Fingerprint, Shard: at.Shard, Process: i.identity, Keep: i.keepFor.Seconds(),
		News: (*sharedgateway.News)(i.news.Load()), Seal: i.book.Load().key(), Name: i.name, Python: i.info.Python,
	})
}

// openBook begins to write down what the session's calls come to, or goes on with what an earlier
// host has written under a seal. Where that cannot be, they end with this host.
func (i *Interpreter) openBook(seal []byte) {
	if !i.records || !i.python || !i.kernel.Replays() {
		i.claim.DropLog()
		return
	}
	b, err := newBook(i.claim, seal, i.heir, i.info.Earlier)
	if i.heir = nil; err == nil {
		i.book.Store(b)
	}
}

// closeBook leaves the log to the next host, or removes it when the call in it has ended here.
func (i *Interpreter) closeBook() {
	if b := i.book.Load(); b != nil && !b.close() {
		i.book.Store(nil)
	}
}

// Record returns where it is written down what the session's calls have come to; nil: they end
// with the host.
func (i *Interpreter) Record() kernel.Record {
	b := i.book.Load()
	if b == nil || !i.outlives.Load() {
		return nil
	}
	return b
}

// catchUp gives a kernel that ran on what it needs of this host.
func (i *Interpreter) catchUp(ctx context.Context) error {
	if i.late == "" {
		return nil
	}
	if _, err := i.silently(ctx, i.late); err != nil {
		return fmt.Errorf("take over the session's kernel: %w", err)
	}
	i.late = ""
	return nil
}

// forget ends the session's place in the journal: its kernel is gone.
func (i *Interpreter) forget() {
	i.closed.Do(func() {
		i.hasAnswered(false)
		i.server.warm.gone()
		if i.claim != nil {
			i.closeBook()
			_ = i.claim.Forget() // it names a kernel that is gone, which the next host sees
			i.claim.Release()
		}
	})
}

// release gives the session to the next host.
func (i *Interpreter) release() {
	i.closed.Do(func() {
		i.hasAnswered(false)
		i.server.warm.gone()
		if i.claim != nil {
			i.claim.Release()
		}
	})
}
