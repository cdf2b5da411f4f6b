package process

import (
	"context"
	"os"
	"sync"
	"time"
)

// Owner owns what a host starts, and everything that descends from it: also what has
// left its process group and its session, and whose parent has ended. It is a small
// program of Python, a subreaper (prctl(2)), below which children start whose
// [Options.Owner] it is. When the host ends, however that happens, it kills everything
// below it.
//
// A child of an owner is started, signalled, awaited and reaped as any other. The owner
// is two processes. If the one that works is killed, its children are killed with it at
// that instant, and the next child gets a new owner; what had left their groups belongs
// to the one that guards. If that one is killed, the other goes on. If both are, an heir
// takes their place: what is left of theirs it finds by its mark (see [Mark]).
//
// It works on Linux, with an interpreter that can call prctl(2). Elsewhere, and while
// none is known, children start as without one. The zero value is ready to use, a nil
// *Owner is none. Any goroutine may call the methods.
type Owner struct {
	looking sync.Mutex // held while look is called

	mu     sync.Mutex
	python string                           // guarded by mu; "" while it is not known
	look   func(ctx context.Context) string // guarded by mu; nil: there is nobody to ask
	shared map[string]*keeper               // guarded by mu: by what confines their children, "" for nothing
	all    map[*keeper]struct{}             // guarded by mu: those that have not ended
	over   bool                             // guarded by mu: no child gets this owner any more
	mark   Mark                             // guarded by mu: of children that have no other; 0 until there are some
	claims map[Mark]int                     // guarded by mu: other marks of what is below it, and how often each is claimed
	left   map[Mark]bool                    // guarded by mu: those of what was left when both processes of one were killed
	hold   func(files []*os.File) error     // guarded by mu; nil: what is below the owner ends with this process

	failed int       // guarded by mu: how many children in a row found none that begins
	after  time.Time // guarded by mu: when one is tried again
	unfit  int       // guarded by mu: how many in a row have ended before they could do anything

	startWait time.Duration // of its keepers; 0: the default. Not changed after the first child
}

// Outlive has what is below the owner end not with this process alone: hold is called
// with the descriptors by which the owner knows that its host lives, each time before
// the first child starts below one of its processes, and who has copies of them keeps
// everything below from ending. hold keeps its own copies; when it fails, children start as
// without an owner. [Owner.Close] ends everything all the same. It is called before the
// first child; the goroutine that starts one calls hold, which must not use the owner.
func (o *Owner) Outlive(hold func(files []*os.File) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hold = hold
}

// Claim says that everything with a mark is below the owner, until release is called: what
// is below it was marked with another than it had from [Start].
func (o *Owner) Claim(m Mark) (release func()) {
	if o == nil || m == 0 {
		return func() {}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.claims == nil {
		o.claims = map[Mark]int{}
	}
	o.claims[m]++
	return sync.OnceFunc(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.claims[m]--; o.claims[m] <= 0 {
			delete(o.claims, m)
		}
	})
}

// Use says which interpreter, an absolute path, can run the owner. The first call that
// names one counts.
func (o *Owner) Use(python string) {
	if o == nil || python == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.python == "" {
		o.python = python
	}
}

// Interpreter returns the one that runs the owner, "" while none is known. It may be
// looked for, once.
func (o *Owner) Interpreter() string {
	if o == nil {
		return ""
	}
	return o.interpreter()
}

// Ask has look called, once, when an interpreter is needed and [Owner.Use] has named
// none. It returns the path of one, "" when there is none.
func (o *Owner) Ask(look func(ctx context.Context) string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.look = look
}

// interpreter returns the one to use, "" while none is known. It is looked for once.
func (o *Owner) interpreter() string {
	o.looking.Lock()
	defer o.looking.Unlock()
	o.mu.Lock()
	python, look := o.python, o.look
	if python == "" {
		o.look = nil
	}
	o.mu.Unlock()
	if python != "" || look == nil {
		return python
	}
	o.Use(look(context.Background()))
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.python
}
