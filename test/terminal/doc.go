// Package terminal runs programs in a terminal of this process: a real
// pseudo-terminal of the kernel, and a [Screen] that does what a terminal does
// with what the program writes. Tests type into it and look at it where no
// terminal multiplexer is installed, and pictures of real programs are made from
// it.
//
// # Use
//
// [Start] starts a program, [Terminal.Type] presses keys, [Terminal.Text] reads
// the screen, and [Terminal.Close] ends all of it. Any goroutine may call them.
// [Open] makes a [Device], a terminal in which nothing runs: its other end is
// handed to code of the test's own process, and what is shown is kept as it came.
// A [Screen] is there on every system, the others on Linux.
//
// # Goroutines
//
// One goroutine reads the pseudo-terminal and owns the writing to the screen,
// under the terminal's lock; one waits for the program. A device has one that reads.
// Close joins them.
package terminal
