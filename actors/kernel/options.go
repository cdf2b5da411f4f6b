package kernel

import (
	"time"

	"github.com/coppice-run/coppice/internal/owned"
	"github.com/coppice-run/coppice/messages"
)

// Options makes a kernel actor. The zero value of each field is its default.
type Options struct {
	// Backend makes the interpreter. Required.
	Backend Backend
	// Key is the session that the actor serves.
	Key messages.SessionKey
	// Once says that the kernel serves one call and then ends.
	Once bool
	// Env is set in the interpreter's environment when it starts.
	Env map[string]string
	// Guard hears of the interpreter, and knows limits that it shares with others. nil: there
	// is none.
	Guard Guard
	// Past says why an earlier kernel of the session ended; nil when there was
	// none, or when it had never run code.
	Past *messages.Exit

	// Owner is whom the first call of the session is for, "" for no one in particular.
	Owner string
	// Served is where it is noted whose calls the session has served, "" for one without an
	// owner; whoever makes the next incarnation of the actor passes it on. nil: the actor
	// makes its own.
	Served *owned.Owners
	// Hibernation keeps the session on disk while it has no kernel. nil: nothing does.
	Hibernation Hibernation

	// StartTimeout bounds the start of the interpreter: how long it may have had the
	// chance to become ready. What it waited for a processor or a disk, for its turn,
	// for the process that it comes from, and what this process stood still, is not
	// counted. 0: 2 min.
	StartTimeout time.Duration
	// StartCeiling ends a start all the same, after so much time in which this process
	// did not stand still and the start did not wait for its turn. It bounds the wait
	// for the process that the interpreter comes from, too. 0: five times
	// StartTimeout.
	StartCeiling time.Duration
	// InterruptGrace is how long an interrupted cell has to end before its
	// interpreter is ended; time in which it had no processor, as far as that can be
	// told, or in which this process stood still, is given to it again. It is ended
	// all the same after 30 s, or InterruptGrace if that is more, in which this
	// process did not stand still. 0: 1.5 s.
	InterruptGrace time.Duration
	// CloseTimeout bounds one attempt to close the interpreter; time in which it had no
	// processor to end with, or in which this process stood still, is not counted, for
	// up to five times as long. 0: 6 s, more than the 5.1 s that a Jupyter server takes
	// for a process that ignores SIGTERM.
	CloseTimeout time.Duration
	// CellRuntime is how long one cell may run before it is interrupted, whatever
	// the deadline of its call is. 0: no limit.
	CellRuntime time.Duration
	// CellOutput is how many bytes one cell may print and show; it is interrupted then,
	// and what comes after that is left out. 0: no limit.
	CellOutput int64
	// FlushTimeout bounds the wait for the sinks of a call whose time is over: the
	// kernel is stopped, or the call was interrupted and its grace has passed. Until
	// then its result is waited for, since what is still to be done for it takes as
	// long as the machine lets it: 5 min at most, or FlushTimeout when that is more.
	// 0: 10 s.
	FlushTimeout time.Duration
	// HeartbeatEvery is how often the interpreter is asked whether it lives, or looked at
	// (see [Looker]). It has as
	// long to answer, and up to six times that when it has no processor to answer
	// with. 0: 5 s; negative: never.
	HeartbeatEvery time.Duration
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if o.Served == nil {
		o.Served = new(owned.Owners)
	}
	def(&o.InterruptGrace, 1500*time.Millisecond)
	def(&o.CloseTimeout, 6*time.Second)
	def(&o.FlushTimeout, 10*time.Second)
	def(&o.HeartbeatEvery, 5*time.Second)
	return o
}
