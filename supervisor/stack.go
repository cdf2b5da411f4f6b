package supervisor

// warm makes the goroutine's stack large enough for what follows, while there
// is next to nothing on it. Hollywood starts a goroutine for every burst of
// messages; it begins with 2 KiB and would have to be copied twice, frame by
// frame, in the depth of a supervisor's turn. Measured, that was half of the
// cost of a message.
//
//go:noinline
func warm(never bool) {
	if never {
		var room [4096]byte
		use(room[:])
	}
}

// Warm does so for a goroutine of a behaviour whose frames are deep, such as one
// that talks to an interpreter: 16 KiB. It is called first in that goroutine.
func Warm() { warmer(false) }

//go:noinline
func warmer(never bool) {
	if never {
		var room [9216]byte
		use(room[:])
	}
}

//go:noinline
func use([]byte) {}
