package supervisor

import (
	"time"

	"github.com/coppice-run/coppice/supervisor/strategy"
)

// Spec says how to make a child. A supervisor copies it.
type Spec struct {
	// Key names the child among its siblings. Any string is legal.
	Key string
	// Kind classifies the child, for [strategy.For] and for the snapshot.
	Kind string
	// Owner is the label that [strategy.Quota] counts the child under; empty: it is not
	// counted.
	Owner string
	// New makes the behaviour of one incarnation. It runs under the guard, in
	// the new actor's goroutine. Required.
	New func() Behaviour
	// Restart is read by the group strategies.
	Restart strategy.RestartType
	// ManualUp says that the child is ready when it calls Ctx.Up, not when Init
	// returns.
	ManualUp bool
	// StartTimeout bounds the time from spawn to up. 0: 30 s, and 5 min when
	// the behaviour is a Supervisor, whose children have timeouts of their own.
	// Neither it nor StopTimeout runs while this process stands still.
	StartTimeout time.Duration
	// StopTimeout bounds the time from the request to stop to the end of
	// Terminate; then the incarnation is abandoned. 0: 5 s, and 1 min when the
	// behaviour is a Supervisor. What the child says that it waited for a processor
	// meanwhile (Ctx.Waited) is not counted, for up to five times StopTimeout.
	StopTimeout time.Duration
	// Significant children can end their supervisor; see
	// [strategy.AutoShutdown].
	Significant bool
	// Inbox is how many messages the mailbox has room for before it first
	// grows. It has no limit; the room costs 32 bytes a message for as long as
	// the child lives. 0: 8.
	Inbox int
}

const (
	startTimeout           = 30 * time.Second
	stopTimeout            = 5 * time.Second
	supervisorStartTimeout = 5 * time.Minute
	supervisorStopTimeout  = time.Minute
	inboxSize              = 8
	// stopCeilings is how often StopTimeout fits into the time after which a child is
	// abandoned that has no processor to end with.
	stopCeilings = 6
)

func (s *Spec) startTimeout(supervises bool) time.Duration {
	switch {
	case s.StartTimeout > 0:
		return s.StartTimeout
	case supervises:
		return supervisorStartTimeout
	default:
		return startTimeout
	}
}

func (s *Spec) stopTimeout(supervises bool) time.Duration {
	switch {
	case s.StopTimeout > 0:
		return s.StopTimeout
	case supervises:
		return supervisorStopTimeout
	default:
		return stopTimeout
	}
}

func (s *Spec) inbox() int {
	if s.Inbox > 0 {
		return s.Inbox
	}
	return inboxSize
}
