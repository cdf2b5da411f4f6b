package main

// survivor is a change that no test can notice.
type survivor struct {
	// file is its path in the repository, kind what gremlins calls the change.
	file, kind string
	// code is what stands around the changed place, in its line.
	code string
	// why says what makes the changed code do the same.
	why string
}

// sorted is why a loop over children that come in the order of their idleness may go on.
const sorted = "children come in the order of their idleness: those behind are younger, too, and the loop only takes longer"

var explained = []survivor{
	{"supervisor/strategy/backoff.go", "CONDITIONALS_BOUNDARY", "o.Limit < MaxFailures", "a view remembers MaxFailures, so a limit of that number is never passed"},
	{"supervisor/strategy/backoff.go", "ARITHMETIC_BASE", "d + time.Duration(spread", "the spread is as often above 0 as below: which keys wait longer is left open"},
	{"supervisor/strategy/capacity.go", "INVERT_LOOPCTRL", "break // the rest has been idle for less", sorted},
	{"supervisor/strategy/group.go", "CONDITIONALS_BOUNDARY", "o.Order < c.Order", "no two children have the same order, and the child itself was left out before"},
	{"supervisor/strategy/heartbeat.go", "INVERT_LOGICAL", "t.Resumed.IsZero() || !t.Resumed.After", "a stall before the silence only makes what came after it longer, and longer than asked it is anyway"},
	{"supervisor/admit.go", "CONDITIONALS_BOUNDARY", "s.waitlist.n > 1", "one that waits alone is asked about at the end of the turn, as those that wait beside others are"},
	{"supervisor/admit.go", "CONDITIONALS_BOUNDARY", "if ch.queue.len() > 0 {", "a key that nothing waits for was made before, and nobody is asked about it"},
	{"supervisor/admit.go", "CONDITIONALS_BOUNDARY", "len(full) >= len", "those behind are looked at one by one, and passed over"},
	{"supervisor/child.go", "INVERT_LOGICAL", "ch.live == nil || ch.state", "one more that may be silent: the strategy looks at the state itself, and what idles or works has an incarnation"},
	{"supervisor/commons.go", "INVERT_LOGICAL", "s.inHand.Add(-1) == 0 && s.closing", "a shutdown is woken once for nothing, and looks again"},
	{"supervisor/incarnation.go", "INVERT_LOGICAL", "c.phaseNow() != phaseLive || !c.inited", "a supervisor that is asked to end looks at its controls once more before it does, and then as it ends"},
	{"supervisor/incarnation.go", "INVERT_LOGICAL", "!c.suspended || c.ended", "one that is not suspended has kept nothing, nor has one that has ended"},
	{"supervisor/incarnation_end.go", "INVERT_LOGICAL", "o != opTerminate && !c.ended", "what is let go of after the end finds the last word said, and it is not said twice"},
	{"supervisor/incarnation_end.go", "CONDITIONALS_NEGATION", "r := c.rare; r != nil", "a watcher that was stopped says nothing: what is left of it is memory"},
	{"supervisor/life.go", "INVERT_LOGICAL", "ch.up() || ch.next != sequelOpen", "what is up, or about to end, is in another state than starting"},
	{"supervisor/life.go", "INVERT_LOGICAL", "!= sequelOpen || ch.state != messages.ChildStarting", "what is up, or about to end, is in another state than starting"},
	{"supervisor/incarnation.go", "ARITHMETIC_BASE", "WithMaxRestarts(-1)", "the engine restarts what panics, and no panic of a child gets to it"},
	{"supervisor/tripwire.go", "ARITHMETIC_BASE", "WithMaxRestarts(-1)", "the engine restarts what panics, and the tripwire does not"},
	{"supervisor/life.go", "CONDITIONALS_BOUNDARY", "case ch.after > 0:", "a delay of no time is over at once"},
	{"supervisor/patience.go", "CONDITIONALS_BOUNDARY", "lent > s.lent {", "nothing more is lent"},
	{"supervisor/queue.go", "INVERT_LOGICAL", "l.head > 32 && l.head", "what waits is moved to the front more often"},
	{"supervisor/queue.go", "CONDITIONALS_BOUNDARY", "l.head > 32 && l.head > len", "what waits is moved to the front one work sooner"},
	{"supervisor/children.go", "CONDITIONALS_BOUNDARY", "len(l) >= limit", "a view that remembers one failure more is asked about as many as before"},
	{"supervisor/due.go", "CONDITIONALS_BOUNDARY", "h[i].due < h[j].due", "which of two at the same instant comes first is left open"},
	{"supervisor/events.go", "CONDITIONALS_BOUNDARY", "e.watchers.Load() > 0", "what nobody watches is made, and delivered to nobody"},
	{"supervisor/events.go", "INVERT_LOGICAL", "e.closed || len(e.fns) == 0", "what nobody watches is kept for a moment, and delivered to nobody"},
	{"supervisor/events.go", "CONDITIONALS_BOUNDARY", "len(e.q) >= maxEvents", "one event more is kept for those who are slow"},
	{"supervisor/group.go", "INVERT_LOGICAL", "messages.ChildSuspended && ch.failure", "what has failed and is not suspended is about to end already, with that failure"},
	{"supervisor/shutdown.go", "CONDITIONALS_BOUNDARY", "d < s.o.Drain", "it is what it has been"},
	{"supervisor/shutdown.go", "CONDITIONALS_BOUNDARY", "d <= 0", "a drain of no time is over when it begins"},
	{"supervisor/stop.go", "INVERT_LOGICAL", "ch.static && ch.next", "the dynamic ones have been asked to end before, and nobody is asked twice"},
	{"supervisor/supervisor.go", "ARITHMETIC_BASE", "s.now + instant(s.o.Tick)", "ticks that are over are skipped before the first is waited for"},
	{"supervisor/timer.go", "CONDITIONALS_BOUNDARY", "s.nextTick <= s.now && s.armed", "the tick of this very instant comes, and the next is waited for then"},
	{"supervisor/timer.go", "CONDITIONALS_BOUNDARY", "s.due[0].due < next", "both are the same instant"},
	{"supervisor/timer.go", "INVERT_LOGICAL", "next == s.armed || next == 0", "a timer that fires for nothing does no harm"},
	{"supervisor/submit.go", "CONDITIONALS_NEGATION", "!w.Fresh && ch.queue.len() == 0 && !ch.queued", "what is handed at once gets to the same child in the same order by way of the queue"},
	{"supervisor/system.go", "CONDITIONALS_BOUNDARY", "case o.Drain < 0:", "0 has become the default before"},
	{"supervisor/timer.go", "INVERT_LOGICAL", "s.o.Strategy != nil && s.ending == nil", "a tick is for who decides: without a strategy, and while all ends, nothing is decided"},
	{"supervisor/turn.go", "INVERT_LOGICAL", "s.sys.events.watched()) && !s.fenced()", "what nobody is told of is noted, and one that was given up tells nothing"},
	{"supervisor/heard.go", "ARITHMETIC_BASE", "time.Second / 2", "how many are in one list decides how many are looked at, and not which are silent"},
	{"actors/gateway/deadlines.go", "INVERT_LOGICAL", "again && (h.due.at.IsZero()", "it looks four times a second for nothing, and no result is another one"},
	{"actors/gateway/handler.go", "INVERT_LOGICAL", "if !ok || !exec.Resumed", "a call that no earlier host had begun is not given to a kernel once something asks for its end"},
	{"actors/gateway/options.go", "CONDITIONALS_BOUNDARY", "if len(o.Servers) > 0", "a strategy for children that there are none of decides nothing"},
	{"actors/gateway/workspaces.go", "INVERT_LOGICAL", "child.Kind == KindKernel && ok", "a kernel has the key of a session, and nothing else has"},
	{"fleet/claim.go", "CONDITIONALS_BOUNDARY", "was.Until > time.Now().Unix()", "in the second in which it ends, what is kept may be there or not"},
	{"fleet/clock_linux.go", "CONDITIONALS_NEGATION", "unix.CLOCK_BOOTTIME, &t) != nil", "the other clock goes alike while the machine is awake"},
	{"fleet/forget.go", "CONDITIONALS_BOUNDARY", "m.o.Forget < 0", "0 has become the default before"},
	{"fleet/forget.go", "CONDITIONALS_BOUNDARY", "removed > 0", "it decides what is logged"},
	{"fleet/forget.go", "CONDITIONALS_NEGATION", "removed > 0", "it decides what is logged"},
	{"fleet/forget.go", "INCREMENT_DECREMENT", "removed++", "the number is logged, and decides nothing"},
	{"fleet/forget.go", "CONDITIONALS_NEGATION", "if err != nil { // the next look", "it decides what is logged"},
	{"fleet/forget.go", "INVERT_LOGICAL", "if whole || full { // the watch ends", "what is told until it has ended is as good as the rest"},
	{"fleet/forget.go", "CONDITIONALS_NEGATION", "more = full && err == nil", "what a round has left goes with the next look"},
	{"fleet/forget.go", "CONDITIONALS_BOUNDARY", "len(old)+len(orphans) >= mostForgotten", "what a round has left goes with the next look"},
	{"fleet/forget.go", "ARITHMETIC_BASE", "len(old)+len(orphans) >= mostForgotten", "what a round has left goes with the next look"},
	{"fleet/forget.go", "INVERT_LOGICAL", "err != nil && !errors.Is(err, ErrConflict)", "an error is logged, and what a round has left goes with the next look"},
	{"fleet/forget.go", "CONDITIONALS_NEGATION", "err != nil && !errors.Is(err, ErrConflict)", "an error is logged, and what a round has left goes with the next look"},
	{"fleet/kept.go", "CONDITIONALS_NEGATION", `o.claim.Kept == "" && o.claim.Written == 0`, "it writes what the claim says already"},
	{"fleet/member.go", "ARITHMETIC_BASE", "max(pending, m.acked())+1", "nobody counts the renewals of a node that has left"},
	{"fleet/observe.go", "CONDITIONALS_NEGATION", "if err != nil {", "it decides what is logged"},
	{"fleet/observe.go", "ARITHMETIC_BASE", "m.o.TTL/16", "a renewal of its own, of which there are four in that time, has it look as well"},
	{"fleet/observe.go", "CONDITIONALS_NEGATION", "if err == nil {", "what was swapped is read again below, and what was not is not seen for want of a revision"},
	{"fleet/observe.go", "INVERT_LOGICAL", "err == nil && e.Rev != s.rev", "the watch brings the same"},
	{"fleet/observe.go", "CONDITIONALS_NEGATION", "err == nil && e.Rev != s.rev", "the watch brings the same"},
	{"fleet/place.go", "INVERT_LOGICAL", "err != nil || !found", "of what could not be read nothing is found, and what was not found names no node"},
	{"fleet/quota.go", "CONDITIONALS_BOUNDARY", "q.has+1 > q.said", "it says the same once more"},
	{"fleet/quota.go", "ARITHMETIC_BASE", "m.o.TTL/2", "how long one attempt may take; the next renewal makes another"},
	{"fleet/quota.go", "CONDITIONALS_BOUNDARY", "if has > 0", "a member that has none may be named with none"},
	{"fleet/quota.go", "INVERT_LOGICAL", "has > q.said && r.all() > m.o.Most", "it asks once more which members have ended"},
	{"fleet/quota.go", "CONDITIONALS_BOUNDARY", "has > q.said && r.all() > m.o.Most", "it asks once more which members have ended"},
	{"fleet/quota.go", "INCREMENT_DECREMENT", "q.written++", "the numbers only have to differ"},
	{"fleet/renew.go", "INVERT_LOGICAL", "v == lifeRenewed || v == lifeOver", "the life has taken note of it, and the next renewal comes sooner"},
}
