package supervisor

import (
	"context"

	"github.com/anthdm/hollywood/actor"

	"github.com/coppice-run/coppice/supervisor/strategy"
)

// Live counts the incarnations that are not over.
func (s *System) Live() int { return int(s.incarnations.Load()) }

// InHand counts the work in the hands of children.
func (s *System) InHand() int { return int(s.inHand.Load()) }

// Zombies counts the abandoned incarnations whose goroutine has not come back.
func (s *System) Zombies() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.zombies)
}

// Poison does to the incarnation at r what this package never does.
func (s *System) Poison(r Ref) context.Context { return s.engine.Poison(r.live().pid) }

// Engine is the Hollywood engine.
func (s *System) Engine() *actor.Engine { return s.engine }

// View is what a strategy would see of the supervisor now.
func (s *Supervisor) View() strategy.View { return tableView{&s.children} }
