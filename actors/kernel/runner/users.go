package runner

import (
	"github.com/coppice-run/coppice/actors/kernel/walls"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/process"
)

// userPool is where a server's sessions get their users. nil: they have the host's.
type userPool struct {
	*walls.Users
	mark process.Mark // of what runs as one of them; 0: none
}

// held is a user that a session has.
type held struct {
	*walls.User
	mark process.Mark
}

// lease holds a user. nil: there is no pool.
func (p *userPool) lease() (*held, error) {
	if p == nil {
		return nil, nil //nolint:nilnil // as with the pool
	}
	u, err := p.Lease()
	if err != nil {
		return nil, err
	}
	return &held{u, p.mark}, nil
}

// user is a user as a session's process gets it.
func (h *held) user() *ndjson.User {
	if h == nil {
		return nil
	}
	return &ndjson.User{UID: h.UID(), Shared: h.Shared(), Folder: h.Folder(), Mark: uint64(h.mark)}
}

// share is the user for one more session, a copy of the one that has it.
func (h *held) share() *held { return &held{h.Share(), h.mark} }

// giveUp gives a user back that no session has any more.
func (h *held) giveUp() {
	if h != nil {
		h.GiveUp()
	}
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
