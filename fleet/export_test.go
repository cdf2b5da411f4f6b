package fleet

// Slots is how many keys a member holds on to.
func (m *Member) Slots() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.slots)
}
