package spool

// ring is a queue of slices that re-uses its array, so that a steady flow
// through it allocates nothing.
type ring struct {
	buf   [][]byte
	first int
	n     int
}

// len returns how many records are queued.
func (r *ring) len() int { return r.n }

// push appends rec.
func (r *ring) push(rec []byte) {
	if r.n == len(r.buf) {
		grown := make([][]byte, max(16, 2*len(r.buf)))
		for i := range r.n {
			grown[i] = r.buf[(r.first+i)%len(r.buf)]
		}
		r.buf, r.first = grown, 0
	}
	r.buf[(r.first+r.n)%len(r.buf)] = rec
	r.n++
}

// pop takes the oldest record out; there must be one.
func (r *ring) pop() []byte {
	rec := r.buf[r.first]
	r.buf[r.first] = nil
	r.first = (r.first + 1) % len(r.buf)
	r.n--
	return rec
}
