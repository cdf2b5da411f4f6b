package supervisor

import "slices"

// fifo is the work that waits for a child. Without any it has no memory.
type fifo struct{ l *list }

type list struct {
	w    []Work
	head int
}

func (f *fifo) len() int {
	if f.l == nil {
		return 0
	}
	return len(f.l.w) - f.l.head
}

func (f *fifo) push(w Work) {
	if f.l == nil {
		f.l = &list{}
	}
	if l := f.l; l.head > 32 && l.head > len(l.w)/2 {
		// A queue that is never empty must not keep what has left it.
		l.w, l.head = slices.Delete(l.w, 0, l.head), 0
	}
	f.l.w = append(f.l.w, w)
}

// pushFront puts back what was taken out too early.
func (f *fifo) pushFront(w Work) {
	switch {
	case f.l == nil:
		f.push(w)
	case f.l.head > 0:
		f.l.head--
		f.l.w[f.l.head] = w
	default:
		f.l.w = slices.Insert(f.l.w, 0, w)
	}
}

func (f *fifo) pop() Work {
	l := f.l
	w := l.w[l.head]
	l.w[l.head] = Work{}
	l.head++
	if l.head == len(l.w) {
		f.l = nil
	}
	return w
}

func (f *fifo) peek() Work { return f.l.w[f.l.head] }

// all returns the work, oldest first.
func (f *fifo) all() []Work {
	if f.l == nil {
		return nil
	}
	return slices.Clone(f.l.w[f.l.head:])
}

// remove takes w out without disturbing the order of the rest.
func (f *fifo) remove(w Work) bool {
	if f.l == nil {
		return false
	}
	for i := f.l.head; i < len(f.l.w); i++ {
		if f.l.w[i].same(w) {
			f.l.w = slices.Delete(f.l.w, i, i+1)
			if f.len() == 0 {
				f.l = nil
			}
			return true
		}
	}
	return false
}

// drop drops all work that was settled while it waited, and returns how much is left.
func (f *fifo) drop() int {
	if f.l == nil {
		return 0
	}
	f.l.w, f.l.head = slices.DeleteFunc(slices.Delete(f.l.w, 0, f.l.head), Work.Settled), 0
	left := len(f.l.w)
	if left == 0 {
		f.l = nil
	}
	return left
}

// trim drops work at the front that was settled while it waited.
func (f *fifo) trim() {
	for f.len() > 0 && f.peek().Settled() {
		f.pop()
	}
}
