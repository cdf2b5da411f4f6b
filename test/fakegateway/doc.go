// Package fakegateway is a Jupyter server in the process of a test: REST and
// WebSocket as a Kernel Gateway offers them, with kernels that interpret a tiny
// script instead of Python and misbehave on command.
//
// It shares no code with the client that it tests, so that a misreading of the
// protocol shows up as a disagreement between the two.
//
// # Guarantees
//
//   - It listens on 127.0.0.1 only, asks for its token on every request, and
//     answers 401 without it, as a gateway does.
//   - A kernel handles shell requests one at a time, in order; control requests
//     at once. Messages of one kernel leave in the order in which they were
//     sent.
//   - [Server.Close] ends every goroutine and connection before it returns.
//
// # Script
//
// What a kernel "executes" is a list of lines, see [Cell.Run]:
//
//	out TEXT          stdout: TEXT and a newline
//	err TEXT          stderr
//	result TEXT       the value of the cell
//	display MIME TEXT display_data
//	flood N           N stream messages, "0" to "N-1"
//	raise NAME TEXT   an exception ends the cell
//	block             waits for an interrupt: KeyboardInterrupt
//	await             the same, but notices it only when another shell request comes
//	ask PROMPT        asks for input and prints what it got
//	exit              asks for the end of the interpreter
//	die               the process ends in the middle of the cell
//
// Any other line prints itself.
package fakegateway
