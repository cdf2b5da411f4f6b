package supervisor

import (
	"github.com/anthdm/hollywood/actor"
)

// tripwire listens to Hollywood's own events. Its restart code must never run,
// because an incarnation lets nothing panic into it, and no two actors ever
// have one name: if either happens, this package is wrong.
type tripwire struct {
	engine *actor.Engine
	pid    *actor.PID
	bug    func(format string, args ...any)
}

func newTripwire(engine *actor.Engine, bug func(format string, args ...any)) *tripwire {
	t := &tripwire{engine: engine, bug: bug}
	t.pid = engine.SpawnFunc(t.receive, "tripwire", actor.WithMaxRestarts(-1), actor.WithInboxSize(8))
	engine.Subscribe(t.pid) // with this very pointer: Hollywood compares pointers
	return t
}

func (t *tripwire) receive(hc *actor.Context) {
	switch m := hc.Message().(type) {
	case actor.ActorRestartedEvent:
		t.bug("hollywood restarted %s: %v", m.PID.GetID(), m.Reason)
	case actor.ActorMaxRestartsExceededEvent:
		t.bug("hollywood gave %s up", m.PID.GetID())
	case actor.ActorDuplicateIdEvent:
		t.bug("two actors are called %s", m.PID.GetID())
	}
}

// stop unsubscribes, because a subscriber that is gone makes Hollywood's event
// stream feed itself its own dead letters for ever.
func (t *tripwire) stop() {
	t.engine.Unsubscribe(t.pid)
}
