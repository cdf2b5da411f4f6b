package judge

import "strconv"

// history is what is known of a session's interpreters before a call.
type history struct {
	seen  map[string]bool // the incarnations
	last  *step           // the last beginning of a cell
	ended bool            // and it has ended
	gone  string          // the incarnation that a call was told to be lost
	fresh bool            // a call was told of a new kernel since, of which no cell is known
}

// call judges what was told of a call by what its cells did.
func (r *Report) call(c *call, h *history) {
	id := c.asked.Call
	began, ended := map[int]int{}, map[int]int{}
	first := true
	for i, s := range c.steps {
		if s.end {
			ended[s.cell]++
			if i == 0 || c.steps[i-1] != (step{call: s.call, cell: s.cell, value: s.value, incarnation: s.incarnation}) {
				r.untrue("%s: cell %d ended without having begun right before", id, s.cell)
			}
			h.ended = true
			continue
		}
		r.Ran++
		began[s.cell]++
		if i > 0 && !c.steps[i-1].end {
			r.untrue("%s: cell %d began while another ran", id, s.cell)
		}
		r.value(c, s, h, first)
		first = false
		h.seen[s.incarnation] = true
		h.last, h.ended, h.fresh = &c.steps[i], false, false
	}
	for cell, n := range began {
		if n > 1 || ended[cell] > 1 {
			r.untrue("%s: cell %d ran %d times", id, cell, n)
		}
		if cell >= c.asked.Cells {
			r.untrue("%s: cell %d of %d ran", id, cell, c.asked.Cells)
		}
	}
	if c.result == nil {
		return
	}
	switch c.result.Outcome {
	case "ok":
		for cell := range c.asked.Cells {
			if began[cell] != 1 || ended[cell] != 1 {
				r.untrue("%s: ok, but cell %d began %d times and ended %d times", id, cell, began[cell], ended[cell])
			}
		}
		r.printed(c)
	case "not_started":
		if len(began) > 0 {
			r.untrue("%s: not started, but %d of its cells ran", id, len(began))
		}
	case "error", "timeout", "cancelled", "lost":
	default:
		r.untrue("%s: the outcome %q", id, c.result.Outcome)
	}
	switch {
	case c.result.State == "fresh" && len(began) == 0:
		h.fresh = true
	case c.result.State == "lost" && h.last != nil:
		h.gone = h.last.incarnation
	}
}

// value judges in which interpreter a cell ran, and with which variables.
func (r *Report) value(c *call, s step, h *history, first bool) {
	id := c.asked.Call
	same := h.last != nil && h.last.incarnation == s.incarnation
	switch {
	case s.incarnation == h.gone:
		r.untrue("%s: an interpreter that was lost serves", id)
	case same && !follows(h, s):
		r.untrue("%s: the value is %d after %d", id, s.value, h.last.value)
	case !same && s.value != 1:
		r.untrue("%s: another interpreter begins with %d", id, s.value)
	case !same && h.seen[s.incarnation]:
		r.untrue("%s: an interpreter that was lost serves again", id)
	case !same && !first:
		r.untrue("%s: its cells ran in two interpreters", id)
	}
	if !first || c.result == nil || c.result.Outcome != "ok" {
		return
	}
	switch {
	case c.result.State == "kept" && !same && !h.fresh:
		r.untrue("%s: kept, but another interpreter ran it", id)
	case c.result.State == "fresh" && same:
		r.untrue("%s: fresh, but the same interpreter ran it", id)
	case c.result.State == "lost": // at its end
	case c.result.State != "kept" && c.result.State != "fresh":
		r.untrue("%s: ok, and the state is %q", id, c.result.State)
	}
}

// follows says whether a value may come after the last one.
func follows(h *history, s step) bool {
	return s.value == h.last.value+1 || (!h.ended && s.value == h.last.value)
}

// printed judges the output of a call that went well.
func (r *Report) printed(c *call) {
	for _, s := range c.steps {
		if s.end || c.result.Incomplete {
			continue
		}
		if s.cell >= len(c.result.Printed) || c.result.Printed[s.cell] != strconv.Itoa(s.value) {
			r.untrue("%s: cell %d had the value %d, and the result says %q", c.asked.Call, s.cell, s.value, c.result.Printed)
		}
	}
}
