package jupyter

import "slices"

// heldBytes bounds what waits for messages with smaller numbers. A message that
// finds no room is not kept: the kernel repeats it.
const heldBytes = 8 << 20

// cursor puts the messages of one execution in order. The kernel numbers them
// from 1, see [Kernel.EnableReplay]; they come late, twice, or not at all. Each
// one leaves the cursor once and in its place, or is counted as lost there.
//
// It does no I/O and knows no clock. Its methods return what to do next.
type cursor struct {
	// next is the number whose turn it is: all smaller ones have left. high is
	// the largest one that is known to have been given.
	next, high int64
	// held are messages that came before their turn, size their weight.
	held map[int64]*message
	size int
}

// step is one thing that leaves a cursor: a message, or a place where so many
// were lost, up to a number.
type step struct {
	message  *message
	lost, to int64
}

// newCursor returns the cursor of an execution that is about to be sent.
func newCursor() *cursor { return &cursor{next: 1, held: map[int64]*message{}} }

// take takes a message that came by itself. A message that has to wait is
// copied, since it refers to the buffer of the reader.
func (c *cursor) take(m *message) []step {
	n := m.header.Number
	c.high = max(c.high, n)
	switch {
	case n < c.next:
		return nil
	case n > c.next:
		c.hold(m)
		return nil
	}
	c.next++
	return c.drain([]step{{message: m}})
}

// hold keeps m for its turn, when there is room.
func (c *cursor) hold(m *message) {
	weight := len(m.content) + messageOverhead
	if c.held[m.header.Number] != nil || c.size+weight > heldBytes {
		return
	}
	kept := *m
	kept.content, kept.frame = slices.Clone(m.content), nil
	c.held[m.header.Number] = &kept
	c.size += weight
}

// messageOverhead is about what a message costs beside its content.
const messageOverhead = 512

// drain adds the held messages whose turn it is.
func (c *cursor) drain(steps []step) []step {
	for m := c.held[c.next]; m != nil; m = c.held[c.next] {
		steps = append(steps, c.release(m))
	}
	return steps
}

// release lets m go, which is held and whose turn it is.
func (c *cursor) release(m *message) step {
	delete(c.held, c.next)
	c.size -= len(m.content) + messageOverhead
	c.next++
	return step{message: m}
}

// until is the number before the first one that is held, 0 when none is.
func (c *cursor) until() int64 {
	first := int64(0)
	for n := range c.held {
		if first == 0 || n < first {
			first = n
		}
	}
	return max(0, first-1)
}

// behind reports whether a message is known that has not left.
func (c *cursor) behind() bool { return c.next <= c.high }

// page is an answer of the kernel: messages with ascending numbers. What is
// numbered up to through, is not in the page and is not held, does not exist any
// more. The kernel had given sent numbers when it answered. asks is the question that its code
// waits for an answer to; nil: there is none, or the kernel does not say.
type page struct {
	messages      []*message
	through, sent int64
	more          bool
	asks          *message
}

// answer takes a page.
func (c *cursor) answer(p page) (steps []step) {
	c.high = max(c.high, p.sent)
	for _, m := range p.messages {
		if m.header.Number < c.next {
			continue
		}
		steps = c.skip(m.header.Number, steps)
		switch {
		case m.header.Number < c.next: // it was held, and has left
		case c.held[c.next] != nil:
			steps = append(steps, c.release(c.held[c.next]))
		default:
			c.next++
			steps = append(steps, step{message: m})
		}
	}
	return c.drain(c.skip(p.through+1, steps))
}

// skip goes on to a number: what is held leaves, what is not is lost.
func (c *cursor) skip(to int64, steps []step) []step {
	for c.next < to {
		if m := c.held[c.next]; m != nil {
			steps = append(steps, c.release(m))
			continue
		}
		end := to
		for n := range c.held {
			end = min(end, n)
		}
		steps = append(steps, step{lost: end - c.next, to: end - 1})
		c.next = end
	}
	return steps
}

// giveUp ends the wait for what is missing: it cannot be repeated.
func (c *cursor) giveUp() []step { return c.skip(c.high+1, nil) }
