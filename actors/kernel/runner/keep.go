package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/forkserver"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// KeepOptions have the sessions of a server outlive its host. The zero value of each field
// but Dir is its default.
type KeepOptions struct {
	// Dir is the folder of all that hosts of this user and this name keep. Required.
	Dir string
	// For is how long sessions wait for the next host. 0: a minute.
	For time.Duration
	// Warn hears what people should know. nil: nobody.
	Warn func(text string, args ...any)
}

// custodyWait bounds a request to a custodian, which does nothing else than to answer.
const custodyWait = 30 * time.Second

// keeper has the sessions of a server outlive its host. A nil one does not. Any goroutine
// may call its methods.
type keeper struct {
	o KeepOptions
	// owner owns the fork server and its sessions, and all that they start: what else the
	// host starts ends with it.
	owner process.Owner
	// leaving says that sessions are left to the next host when they are closed.
	leaving atomic.Bool
	// ends counts the goroutines that watch custodies, and that let go of sessions; close
	// joins them.
	ends sync.WaitGroup
	// forgets counts the goroutines that end what earlier hosts have left; close joins them
	// before it lets go of what keeps that. All calls that begin one are over by then.
	forgets sync.WaitGroup

	mu       sync.Mutex
	own      *custody.Custody         // what this host began; guarded by mu
	life     *forkserver.Lifeline     // guarded by mu
	why      string                   // why sessions are not kept; guarded by mu
	begun    bool                     // guarded by mu
	closed   bool                     // guarded by mu
	earlier  map[*custody.Custody]int // those of earlier hosts, with how many sessions they have; guarded by mu
	heirs    map[string]*heir         // what was taken over and not started, by session; guarded by mu
	lost     map[string]string        // why others were lost, by session; guarded by mu
	sessions map[string]*Interpreter  // those that are kept; guarded by mu
}

func newKeeper(o *KeepOptions) *keeper {
	if o == nil {
		return nil
	}
	k := &keeper{
		o: *o, why: "the process that keeps sessions has not begun", earlier: map[*custody.Custody]int{}, heirs: map[string]*heir{}, lost: map[string]string{},
		sessions: map[string]*Interpreter{},
	}
	if k.o.Warn == nil {
		k.o.Warn = func(string, ...any) {}
	}
	return k
}

func (k *keeper) options(python string) custody.Options {
	return custody.Options{Dir: k.o.Dir, Python: python, KeepFor: k.o.For}
}

// begin starts what keeps sessions, once, and puts it into the options of a fork server.
// When it cannot be had, the sessions end with their host, and it is told why.
func (k *keeper) begin(ctx context.Context, o *forkserver.Options) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.begun {
		k.begun = true
		if err := k.start(ctx, o.Python); err != nil {
			k.why = err.Error()
			k.o.Warn("sessions will end with this host, though they were to outlive it", "err", err)
		}
	}
	if k.own != nil && k.why == "" {
		o.Owner, o.Lifeline = &k.owner, k.life
	}
}

// start starts the custodian. k.mu is held.
func (k *keeper) start(ctx context.Context, python string) error {
	own, err := custody.Begin(ctx, k.options(python))
	if err != nil {
		return err
	}
	life, err := forkserver.NewLifeline()
	if err == nil {
		err = own.Put(ctx, custody.Item{Name: "lifeline", Files: []*os.File{life.File()}, Common: true})
	}
	if err != nil {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), custodyWait)
		defer cancel()
		return errors.Join(err, own.End(c))
	}
	k.owner.Use(python)
	n := 0
	k.owner.Outlive(func(files []*os.File) error {
		c, cancel := context.WithTimeout(context.Background(), custodyWait)
		defer cancel()
		n++ // one child at a time begins
		return own.Put(c, custody.Item{Name: fmt.Sprintf("owner %d", n), Files: files, Common: true})
	})
	k.own, k.life, k.why = own, life, ""
	k.ends.Go(func() { k.watch(own) }) // ends with the custody, which close ends
	return nil
}

// watch tells of the end of a custodian that nobody has asked to end.
func (k *keeper) watch(c *custody.Custody) {
	<-c.Done()
	if c.Err() == nil {
		return
	}
	k.mu.Lock()
	if c == k.own {
		k.why = "the process that keeps sessions has ended"
	}
	k.mu.Unlock()
	k.o.Warn("the process that keeps sessions has ended: those that it kept live on, and will end with this host", "custodian", c.Custodian().PID)
}

// Kept reports whether sessions would outlive the host.
func (k *keeper) kept() (bool, string) {
	if k == nil {
		return false, "KeepSessions is not set"
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.why == "" || !k.begun, k.why
}

// Outlive has the session outlive the host, from when it returns: until then, it has not all
// that it is to have.
func (i *Interpreter) Outlive(ctx context.Context, owners []string, news *kernel.News) {
	if i.keeper != nil && i.kept() == nil {
		i.keeper.hold(ctx, i, owners, (*estate.News)(news))
	}
}

// hold has a session outlive the host.
func (k *keeper) hold(ctx context.Context, i *Interpreter, owners []string, news *estate.News) {
	key := i.keeps
	k.mu.Lock()
	own, able := k.own, k.why == "" && !k.closed
	k.mu.Unlock()
	if !able {
		return
	}
	id, err := process.Identify(i.info.PID)
	if err != nil {
		return // its end is noticed elsewhere
	}
	n := estate.Note{
		Version: estate.Version, Key: key, Process: id, Python: i.info.Python, Mark: string(i.mark), Log: rand.Text() + ".log", Seal: estate.NewSeal(),
		Owners: owners[:min(len(owners), estate.MaxOwners)], News: news,
	}
	h := &kept{keeper: k, from: own, name: key.ID(), note: n}
	if h.log, err = estate.Create(own.Dir(), n.Log, n.Seal); err == nil {
		note, e := n.Encode()
		if err = e; err == nil {
			c, cancel := context.WithTimeout(ctx, custodyWait)
			err = i.child.Keep(func(files []*os.File) error {
				return own.Put(c, custody.Item{Name: h.name, Note: note, Files: files})
			})
			cancel()
		}
		if err != nil {
			h.discard()
		}
	}
	if err != nil {
		if !errors.Is(err, custody.ErrGone) { // which is told
			k.o.Warn("a session will end with this host, though it was to outlive it", "session", key.String(), "err", err)
		}
		return
	}
	k.mu.Lock()
	k.sessions[h.name] = i
	k.mu.Unlock()
	i.mu.Lock()
	i.held.Store(h)
	over := i.over
	i.mu.Unlock()
	if over {
		h.drop()
	}
	if k.leaving.Load() { // it was not among those that leave has seen
		h.log.Freeze()
	}
}

// mayOutlive has a session that was made outlive the host, once it is asked to ([Interpreter.Outlive]).
// What it says is read so that nothing of it is lost with this process.
func (k *keeper) mayOutlive(i *Interpreter, key messages.SessionKey) {
	if k == nil || key.Workspace != "" {
		return
	}
	i.keeper, i.keeps = k, key
	i.lines = ndjson.NewReader(i.child.HeldReader(i.mark), ndjson.MaxFrame).Mark(i.mark)
}

// release counts one session less of a custody. One of an earlier host ends with its
// last.
func (k *keeper) release(c *custody.Custody) {
	k.mu.Lock()
	n, is := k.earlier[c]
	if is {
		k.earlier[c] = n - 1
	}
	last := is && n == 1
	if last {
		delete(k.earlier, c)
	}
	k.mu.Unlock()
	if last {
		ctx, cancel := context.WithTimeout(context.Background(), custodyWait)
		defer cancel()
		_ = c.End(ctx) // else it ends without a host
	}
}

// leave says that sessions are left to the next host when they are closed: what their
// calls do from now on is written down by the next host.
func (k *keeper) leave() {
	if k == nil {
		return
	}
	k.leaving.Store(true)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, i := range k.sessions {
		if i.kept().leaves() {
			i.kept().log.Freeze()
		}
	}
}

func (k *keeper) isLeaving() bool { return k != nil && k.leaving.Load() }

// claim returns what waits for a start with a key, nil for nothing.
func (k *keeper) claim(key messages.SessionKey) *heir {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.heirs[key.ID()]
	delete(k.heirs, key.ID())
	return h
}

// earlierEnd says, once, why the state is gone that a session had with an earlier host.
func (k *keeper) earlierEnd(key messages.SessionKey) string {
	if k == nil {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	why := k.lost[key.ID()]
	delete(k.lost, key.ID())
	return why
}

// disown ends the session that waits for a start with a key.
func (k *keeper) disown(ctx context.Context, key messages.SessionKey) {
	h := k.claim(key)
	if h == nil {
		return
	}
	k.letGo(ctx, h, key)
}

// letGo ends what an earlier host has left and no start has taken over.
func (k *keeper) letGo(ctx context.Context, h *heir, key messages.SessionKey) {
	h.close() // the custodian's copies are the last
	_ = h.from.Drop(ctx, key.ID())
	k.release(h.from)
}

// forget is disown for a session that is closed or begins anew. The custodian hears of it
// before close asks it for anything, and the caller does not wait for that.
func (k *keeper) forget(key messages.SessionKey) {
	h := k.claim(key)
	if h == nil {
		return
	}
	k.forgets.Go(func() { // ends with the custodian's answer; close joins it
		ctx, cancel := context.WithTimeout(context.Background(), custodyWait)
		defer cancel()
		k.letGo(ctx, h, key)
	})
}

// close ends all that is kept, or leaves it to the next host. All sessions are closed, or
// left, before.
func (k *keeper) close() error {
	if k == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), custodyWait)
	defer cancel()
	k.forgets.Wait()
	k.mu.Lock()
	k.closed = true
	all := make([]*custody.Custody, 0, len(k.earlier)+1)
	for c := range k.earlier {
		all = append(all, c)
	}
	if k.own != nil {
		all = append(all, k.own)
	}
	clear(k.earlier)
	heirs := k.heirs
	k.heirs = nil
	life := k.life
	k.mu.Unlock()
	for _, h := range heirs {
		h.close()
	}
	leaving := k.leaving.Load()
	var err error
	for _, c := range all {
		if leaving {
			err = errors.Join(err, c.Leave(ctx))
		} else {
			err = errors.Join(err, c.End(ctx))
		}
	}
	if leaving {
		k.owner.Leave()
	} else {
		err = errors.Join(err, k.owner.Close(ctx))
	}
	if life != nil {
		err = errors.Join(err, life.Close())
	}
	k.ends.Wait()
	if errors.Is(err, custody.ErrGone) {
		return nil // which was told
	}
	return err
}

var _ kernel.Leaver = (*Interpreter)(nil)
