package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/sandbox"
	"github.com/coppice-run/coppice/internal/users"
)

// userPool is where a server's sessions get their users. nil: they have the host's.
type userPool struct {
	block *users.Block
	mark  process.Mark   // of what runs as one of them; 0: none
	dir   string         // of the folders of users
	undo  []func() error // closes the folders of Write again
	ends  sync.WaitGroup // of the releases of users, which sessions do not wait for
}

// held is a user that a session has.
type held struct {
	*users.Lease
	pool *userPool
}

// openUsers prepares users for the sessions under rules, with folders in temp.
func openUsers(ctx context.Context, python, temp string, rules sandbox.Rules) (*userPool, error) {
	if err := os.Chmod(temp, 0o711); err != nil { //nolint:gosec // others pass through to what is theirs, and see nothing
		return nil, fmt.Errorf("make a folder for the users of sessions: %w", err)
	}
	block, err := users.Open(ctx, users.Options{Killer: []string{python, "-I", "-S", "-c", "import os; os.kill(-1, 9)"}})
	if err != nil {
		return nil, err
	}
	p := &userPool{block: block, dir: temp}
	for _, dir := range rules.Write {
		if dir == temp {
			continue
		}
		undo, err := users.Grant(dir, block.Group())
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.undo = append(p.undo, undo)
		if undo, err = users.Pass(dir, block.Group()); err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.undo = append(p.undo, undo)
	}
	return p, nil
}

// close gives the users back, when all sessions are gone.
func (p *userPool) close() error {
	p.ends.Wait() // each is bounded
	var err error
	for _, undo := range p.undo {
		err = errors.Join(err, undo())
	}
	return errors.Join(err, p.block.Close())
}

// lease holds a user. nil: there is no pool.
func (p *userPool) lease() (*held, error) {
	if p == nil {
		return nil, nil //nolint:nilnil // as with the pool
	}
	l, err := p.block.Lease(p.dir)
	if err != nil {
		return nil, err
	}
	return &held{l, p}, nil
}

// user is a user as a session's process gets it.
func (h *held) user() *ndjson.User {
	if h == nil {
		return nil
	}
	return &ndjson.User{UID: h.UID(), Shared: h.pool.block.Group(), Folder: h.Folder(), Mark: uint64(h.pool.mark)}
}

// share is the user for one more session, a copy of the one that has it.
func (h *held) share() *held { return &held{h.Share(), h.pool} }

// giveUp gives a user back that no session has any more. What it still runs is ended in
// a goroutine, which the end of the pool joins; what does not end keeps its number.
func (h *held) giveUp() {
	if h != nil {
		h.pool.ends.Go(func() { _ = h.Release(context.Background()) })
	}
}

// reachable says why other users cannot run an interpreter.
func reachable(python string) error {
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

// own notes the session's user. The process may have ended already: then nobody else
// gives the user up.
func (i *Interpreter) own(h *held) {
	if h == nil {
		return
	}
	i.lease.Store(h)
	select {
	case <-i.done:
		i.leaveUser()
	default:
	}
}

// leaveUser gives the session's user up.
func (i *Interpreter) leaveUser() { i.lease.Swap(nil).giveUp() }
