package supervisor

// warm makes the goroutine's stack large enough for what follows, while there
// is next to nothing on it. Hollywood starts a goroutine for every burst of
// messages; it begins with 2 KiB and would have to be copied twice, frame by
// frame, in the depth of a shell's turn. Measured, that was half of the cost of
// a message.
//
//go:noinline
func warm(never bool) {
	if never {
		var room [4096]byte
		use(room[:])
	}
}

//go:noinline
func use([]byte) {}

// Warm does so for a goroutine of an actor that begins to work on something whose
// frames are deep. It is called first in the goroutine. Any goroutine may call it.
func Warm() { warm(false) }
