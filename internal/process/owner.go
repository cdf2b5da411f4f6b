package process

import (
	"context"
	"sync"
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
// to the one that guards. If that one is killed, the other goes on.
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
