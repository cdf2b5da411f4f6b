package jupyter

import (
	"math/bits"
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
	// recent has bit i set when last-i came.
	recent uint64
}

// window is how far back a sequence knows which messages came.
const window = 64

// numberOf splits the id of a message; ok is false when it has no number.
func numberOf(id string) (prefix string, n int64, ok bool) {
	cut := strings.LastIndexByte(id, '_')
	if cut <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(id[cut+1:], 10, 64)
	return id[:cut], n, err == nil && n >= 0
}

// observe notes the id of a message of the kernel, and returns how many numbers
// lie between it and the largest one before.
func (s *sequence) observe(id string) (gap int64) {
	prefix, n, ok := numberOf(id)
	if !ok {
		return 0
	}
	switch {
	case s.prefix == "":
		s.prefix, s.first, s.last = prefix, n, n
	case s.prefix != prefix:
		return 0
	}
	if n > s.last {
		gap = n - s.last - 1
		s.recent <<= min(uint64(n-s.last), window)
		s.last = n
	}
	if back := s.last - n; back < window {
		s.recent |= 1 << back
	}
	s.first = min(s.first, n)
	s.received++
	return gap
}

// since returns the numbers that lie close before the last one, or are it, and
// came; and the largest number before all of them, but not less than base.
func (s *sequence) since(base int64) (n int64, have []int64) {
	n = max(base, s.last-window)
	for r := s.recent; r != 0; r &= r - 1 {
		if came := s.last - int64(bits.TrailingZeros64(r)); came > n {
			have = append(have, came)
		}
	}
	return n, have
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
	// last is the largest number so far: those of the execution are larger.
	last int64
}

// answersOfAnAsk is how many messages a request of ours brings: busy, reply,
// idle. They come on two sockets, so some may be on their way at any instant.
const answersOfAnAsk = 3

// markLocked returns the state of this moment. The kernel's mu is held.
func (k *Kernel) markLocked() mark {
	return mark{missing: k.numbers.missing(), asks: k.asked, strangers: k.strangers, last: k.numbers.last}
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
