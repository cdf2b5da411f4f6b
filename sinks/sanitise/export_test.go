package sanitise

import "unsafe"

// Footprint returns about how many bytes s holds on to.
func (s *Screen) Footprint() int {
	n := cap(s.done) + cap(s.last.buf) + cap(s.last.cells)*int(unsafe.Sizeof(cell{}))
	for _, c := range s.last.cells[:cap(s.last.cells)] {
		n += len(c.marks)
	}
	for _, d := range s.decoders {
		n += cap(d.held)
	}
	return n
}
