package walls

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/sandbox"
	"github.com/coppice-run/coppice/internal/users"
)

// Users are those that what stands behind walls gets, each to one at a time. Any goroutine
// may call the methods.
type Users struct {
	block *users.Block
	dir   string         // of their folders
	undo  []func() error // closes the folders of Write again
	ends  sync.WaitGroup // of the releases of users, which no one waits for but Close
}

// User is one that is held.
type User struct {
	*users.Lease
	of *Users
}

// Pool has the users of one backend, those of its sessions and that of its programs: all are of
// one group, so that each can use what the others make in the folders that may be written. They
// are opened when they are first asked for. The zero value is ready to use; any goroutine may
// call the methods.
type Pool struct {
	mu       sync.Mutex
	users    *Users // nil: they were not opened; guarded by mu
	programs *User  // whom all programs run as; nil: there was none; guarded by mu
	closed   bool   // guarded by mu
}

// Open returns the users for what stands behind rules, with folders in temp. python is one that
// they can reach. It takes root.
func (p *Pool) Open(ctx context.Context, python, temp string, rules sandbox.Rules) (*Users, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.openLocked(ctx, python, temp, rules)
}

// Program returns whom programs run as, all of them: like what one has made in a workspace, what
// it has left running there is the next one's too.
func (p *Pool) Program(ctx context.Context, python, temp string, rules sandbox.Rules) (*User, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u, err := p.openLocked(ctx, python, temp, rules)
	if err == nil && p.programs == nil {
		p.programs, err = u.Lease()
	}
	return p.programs, err
}

func (p *Pool) openLocked(ctx context.Context, python, temp string, rules sandbox.Rules) (*Users, error) {
	if p.closed {
		return nil, errors.New("hold a user: they were given back")
	}
	if p.users != nil {
		return p.users, nil
	}
	err := Reachable(python)
	if err == nil {
		p.users, err = openUsers(ctx, python, temp, rules)
	}
	return p.users, err
}

// Close gives them back, when all that had one is gone; what programs have left is ended.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.users == nil {
		return nil
	}
	if p.programs != nil {
		p.programs.GiveUp()
	}
	err := p.users.close()
	p.users, p.programs = nil, nil
	return err
}

// openUsers prepares users for what stands behind rules, with folders in temp. It takes root.
func openUsers(ctx context.Context, python, temp string, rules sandbox.Rules) (*Users, error) {
	if err := os.Chmod(temp, 0o711); err != nil { //nolint:gosec // others pass through to what is theirs, and see nothing
		return nil, fmt.Errorf("make a folder for the users of sessions: %w", err)
	}
	block, err := users.Open(ctx, users.Options{Killer: []string{python, "-I", "-S", "-c", "import os; os.kill(-1, 9)"}})
	if err != nil {
		return nil, err
	}
	u := &Users{block: block, dir: temp}
	for _, dir := range rules.Write {
		if dir == temp {
			continue
		}
		undo, err := users.Grant(dir, block.Group())
		if err != nil {
			return nil, errors.Join(err, u.close())
		}
		u.undo = append(u.undo, undo)
		if undo, err = users.Pass(dir, block.Group()); err != nil {
			return nil, errors.Join(err, u.close())
		}
		u.undo = append(u.undo, undo)
	}
	return u, nil
}

// close gives the users back, when all that had one is gone.
func (u *Users) close() error {
	u.ends.Wait() // each is bounded
	var err error
	for _, undo := range u.undo {
		err = errors.Join(err, undo())
	}
	return errors.Join(err, u.block.Close())
}

// Lease holds a user.
func (u *Users) Lease() (*User, error) {
	l, err := u.block.Lease(u.dir)
	if err != nil {
		return nil, err
	}
	return &User{l, u}, nil
}

// Shared is the group that all of the users are in, besides their own.
func (h *User) Shared() int { return h.of.block.Group() }

// Process is the user as a process gets it.
func (h *User) Process() *process.User {
	return &process.User{UID: h.UID(), GID: h.UID(), Groups: []int{h.Shared()}}
}

// Share is the user for one more that has it, who owes a GiveUp.
func (h *User) Share() *User { return &User{h.Lease.Share(), h.of} }

// GiveUp gives a user back that no one has any more. What it still runs is ended in
// a goroutine, which the end of the users joins; what does not end keeps its number.
func (h *User) GiveUp() {
	h.of.ends.Go(func() { _ = h.Release(context.Background()) })
}

// Reachable says why other users cannot run an interpreter.
func Reachable(python string) error {
	for _, path := range append([]string{python}, sandbox.InterpreterPaths(python)...) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // it is not there for anybody
		}
		for dir := real; ; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				return fmt.Errorf("look at the interpreter: %w", err)
			}
			if info.Mode()&1 == 0 {
				return fmt.Errorf("the users of sessions cannot reach the interpreter %s: others may not enter %s; take one that all users can run, or open that folder (chmod o+x)", python, dir)
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return nil
}
