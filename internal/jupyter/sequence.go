package jupyter

import (
	"maps"
	"strconv"
	"strings"
)

// sequence watches the numbers that ipykernel gives its messages, in order to
// notice those that never came.
//
// A kernel publishes output on a ZeroMQ socket that drops what its server does
// not take in time: a loop that prints and flushes 6,000 lines loses some
// hundred of them in one run of three, and no message tells. But the ids of
// jupyter_client's Session are "<session>_<pid>_<n>", and n counts every
// message of the process, on all channels. We see them all, except replies to
// other clients. So a gap is a loss, as long as no other client asks.
type sequence struct {
	// prefix is everything before n, "" until the first message came. A child
	// that the user's code forked has another one.
	prefix string
	// first and last are the smallest and the largest n, received how many came.
	first, last, received int64
	// marked is the largest n when an execution began, and late how many came since that are
	// smaller: they were missing then.
	marked, late int64
}

// numberOf splits the id of a message; ok is false when it has no number.
func numberOf(id string) (prefix string, n int64, ok bool) {
	cut := strings.LastIndexByte(id, '_')
	if cut <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(id[cut+1:], 10, 64)
	return id[:cut], n, err == nil && n >= 0
}

// observe notes the id of a message of the kernel.
func (s *sequence) observe(id string) {
	prefix, n, ok := numberOf(id)
	if !ok || (s.prefix != "" && s.prefix != prefix) {
		return
	}
	if s.prefix == "" {
		s.prefix, s.first, s.last = prefix, n, n
	}
	s.first, s.last = min(s.first, n), max(s.last, n)
	s.received++
	if n <= s.marked {
		s.late++
	}
}

// mark begins to count what comes late.
func (s *sequence) mark() {
	s.marked, s.late = s.last, 0
	if s.prefix == "" {
		s.marked = -1 // nothing has come, not even 0
	}
}

// missing returns how many messages up to the last one did not come. Only its
// growth says something: what was sent before we listened is missing for good.
func (s *sequence) missing() int64 {
	if s.prefix == "" {
		return 0
	}
	return s.last - s.first + 1 - s.received
}

// mark is the state of a sequence when an execution began.
type mark struct {
	missing, unseen, strangers int64
}

// answersOfAnAsk is how many messages a request of ours brings: busy, reply,
// idle. They come on two sockets, and from two threads of the kernel, so some may be on
// their way at any instant.
const answersOfAnAsk = 3

// owed counts the answers to requests of ours that have not come. What does not come
// during a whole execution never will, and is forgotten.
type owed struct {
	marks int64
	open  map[string]*owes // by the id of the request
	// unseen are answers to requests that a server makes of its own.
	unseen int64
}

// owes is how many answers to a request are to come, and how many marks were set before it.
type owes struct {
	answers int
	since   int64
}

// ask notes a request.
func (o *owed) ask(id string) {
	if o.open == nil {
		o.open = map[string]*owes{}
	}
	o.open[id] = &owes{answersOfAnAsk, o.marks}
}

// answer notes a message about a request.
func (o *owed) answer(id string) {
	a := o.open[id]
	if a == nil {
		return
	}
	if a.answers--; a.answers == 0 {
		delete(o.open, id)
	}
}

// mark forgets the requests from before the last mark.
func (o *owed) mark() {
	maps.DeleteFunc(o.open, func(_ string, a *owes) bool { return a.since < o.marks })
	o.marks++
}

// due is how many answers are to come.
func (o *owed) due() (n int64) {
	for _, a := range o.open {
		n += int64(a.answers)
	}
	return n
}

// markLocked returns the state of this moment. The kernel's mu is held.
func (k *Kernel) markLocked() mark {
	k.owed.mark()
	k.numbers.mark()
	return mark{missing: k.numbers.missing(), unseen: k.owed.unseen, strangers: k.strangers}
}

// droppedLocked returns how many messages with numbers after m were certainly lost. The
// kernel's mu is held; the idle of the execution has come, and with it all
// older output that was not dropped. What answers requests of ours, also of those from
// before m, may have a number by now and come later.
func (k *Kernel) droppedLocked(m mark) int64 {
	if k.strangers != m.strangers {
		return 0 // their replies are numbered too, and not for us to see
	}
	return max(0, k.numbers.missing()-(m.missing-k.numbers.late)-k.owed.due()-(k.owed.unseen-m.unseen))
}

// holes watches the same numbers for what a connection that broke has swallowed.
// Messages on iopub come in the order in which they were sent, whatever the other
// channels do: a number that is skipped there was lost, unless it came elsewhere.
type holes struct {
	// last is the largest number on iopub, 0 for none.
	last int64
	// elsewhere are the latest numbers of other channels.
	elsewhere [64]int64
	at        int
	// ranges are the numbers that were skipped, both ends included.
	ranges [][2]int64
}

// observe notes a message of the kernel's process.
func (h *holes) observe(prefix string, m *message) {
	p, n, ok := numberOf(m.header.MsgID)
	if !ok || p != prefix {
		return
	}
	if m.channel != chanIOPub {
		h.elsewhere[h.at%len(h.elsewhere)] = n
		h.at++
		return
	}
	if h.last > 0 && n > h.last+1 {
		h.ranges = append(h.ranges, [2]int64{h.last + 1, n - 1})
		if len(h.ranges) > 32 { // they were not asked for in a long time: one that is too large will do
			h.ranges = [][2]int64{{h.ranges[0][0], n - 1}}
		}
	}
	h.last = max(h.last, n)
}

// clear forgets the holes so far.
func (h *holes) clear() { h.ranges = nil }

// count returns how many messages are missing at most.
func (h *holes) count() (missing int64) {
	for _, r := range h.ranges {
		missing += r[1] - r[0] + 1
		for _, n := range h.elsewhere {
			if n >= r[0] && n <= r[1] {
				missing--
			}
		}
	}
	return max(0, missing)
}

// tellHoles reports what is missing in the output of x before the message that is
// about to be handed over, when a connection broke while it ran. It is called by
// the reader.
func (k *Kernel) tellHoles(x *execution) {
	k.mu.Lock()
	missing := int64(0)
	if !x.over && !x.numbered && x.breaks > 0 {
		missing = k.holes.count()
		k.holes.clear()
	}
	k.mu.Unlock()
	if missing > 0 {
		k.noteGap(x, missing, 0)
	}
}
