package jupyter

import (
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
}

// observe notes the id of a message of the kernel.
func (s *sequence) observe(id string) {
	cut := strings.LastIndexByte(id, '_')
	if cut <= 0 {
		return
	}
	n, err := strconv.ParseInt(id[cut+1:], 10, 64)
	if err != nil || n < 0 {
		return
	}
	switch {
	case s.prefix == "":
		s.prefix, s.first, s.last = id[:cut], n, n
	case s.prefix != id[:cut]:
		return
	}
	s.first, s.last = min(s.first, n), max(s.last, n)
	s.received++
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
	missing, asks, strangers int64
}

// answersOfAnAsk is how many messages a request of ours brings: busy, reply,
// idle. They come on two sockets, so some may be on their way at any instant.
const answersOfAnAsk = 3

// markLocked returns the state of this moment. The kernel's mu is held.
func (k *Kernel) markLocked() mark {
	return mark{missing: k.numbers.missing(), asks: k.asked, strangers: k.strangers}
}

// droppedLocked returns how many messages were certainly lost since m. The
// kernel's mu is held; the idle of the execution has come, and with it all
// older output that was not dropped.
func (k *Kernel) droppedLocked(m mark) int64 {
	if k.strangers != m.strangers {
		return 0 // their replies are numbered too, and not for us to see
	}
	return max(0, k.numbers.missing()-m.missing-answersOfAnAsk*(k.asked-m.asks))
}
