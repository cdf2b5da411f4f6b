package selfref

// Gathers sets how many bytes gather_all returns.
func (b *Backend) Gathers(n int) { b.room = n }
