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
	{"actors/gateway/deadlines.go", "INVERT_LOGICAL", "again && (h.due.at.IsZero()", "it looks four times a second for nothing, and no result is another one"},
	{"actors/gateway/handler.go", "INVERT_LOGICAL", "if !ok || !exec.Resumed", "a call that no earlier host had begun is not given to a kernel once something asks for its end"},
	{"actors/gateway/options.go", "CONDITIONALS_BOUNDARY", "if len(o.Servers) > 0", "a strategy for children that there are none of decides nothing"},
}
