package strategy

import "time"

// Strategy decides what becomes of the children of a supervisor. It is a value
// without state, I/O or clock: the same view and event give the same answer.
// A supervisor calls Decide from its own goroutine.
//
// A strategy that has no opinion returns nil. What no strategy decides is: a
// child that failed is stopped ([Fail]), a key that wants to start is started
// ([Spawning]), and everything else stays as it is.
type Strategy interface {
	Decide(View, Event) []Directive
}

// TTLs is implemented by strategies that end idle children after a while, so
// that a snapshot can show when.
type TTLs interface {
	// TTL returns when the strategy will end the child if nothing happens to
	// it before; the zero time when it will not.
	TTL(v View, key string) time.Time
}
