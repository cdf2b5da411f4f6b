package supervisor

// dueHeap orders children by their deadline.
type dueHeap []*child

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = int32(i), int32(j)
}

// Push is for package heap.
func (h *dueHeap) Push(x any) {
	ch := x.(*child)
	ch.index = int32(len(*h))
	*h = append(*h, ch)
}

// Pop is for package heap.
func (h *dueHeap) Pop() any {
	old := *h
	ch := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	ch.index = -1
	return ch
}
