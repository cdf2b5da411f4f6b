package runner

import (
	"context"

	"github.com/coppice-run/coppice/actors/internal/forkserver"
	"github.com/coppice-run/coppice/actors/internal/sandbox"
)

// place is where sessions are made: a fork server, or an interpreter to start.
type place struct {
	server *forkserver.Server
	// spares are sessions that were forked ahead. Run puts them in, Start takes
	// them out and says so in taken, which has as much room.
	spares chan *Interpreter
	taken  chan struct{}

	rules sandbox.Rules       // what the sessions are kept from
	why   string              // why there is no fork server
	spawn *forkserver.Options // set where there is no fork server
}

// session makes the process of a session, or takes one that waits.
func (p *place) session() (*Interpreter, error) {
	if p.spawn != nil {
		child, err := forkserver.Spawn(*p.spawn)
		if err != nil {
			return nil, err
		}
		return newInterpreter(child), nil
	}
	for {
		select {
		case i := <-p.spares:
			p.taken <- struct{}{}
			if i.Err() == nil {
				return i, nil
			}
		default:
			return p.fork()
		}
	}
}

func (p *place) fork() (*Interpreter, error) {
	child, err := p.server.Fork()
	if err != nil {
		return nil, err
	}
	return newInterpreter(child), nil
}

// refill forks one spare. It does not wait for it. Only Run calls it.
func (p *place) refill() {
	if i, err := p.fork(); err == nil {
		p.spares <- i // there is room: as many were taken
	}
}

// close ends the spares. Only Run calls it.
func (p *place) close() {
	for {
		select {
		case i := <-p.spares:
			ctx, cancel := context.WithTimeout(context.Background(), closeWait)
			_ = i.Close(ctx) // it goes on trying; nobody has seen this session
			cancel()
		default:
			return
		}
	}
}
