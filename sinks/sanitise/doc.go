// Package sanitise turns what a program prints into plain text, as a stream.
//
// # Guarantees
//
//   - The text is a function of the bytes alone: however a stream is cut into
//     chunks, the text is the same. A sequence or a UTF-8 character that is cut
//     anywhere is recognised.
//   - The text is valid UTF-8. Each byte that is not part of a character gives
//     one U+FFFD; so do the bytes of a lone surrogate.
//   - Beside printable characters the text holds newline and tab only. Control
//     sequences (ECMA-48: CSI, OSC, DCS, SOS, PM, APC and the two-byte escapes)
//     are removed; so are the other C0 and C1 controls and DEL.
//   - Time is linear in the input and memory is bounded, whatever is printed:
//     [MaxRow] columns of the last row, [MaxHeld] bytes of a control string.
//
// # Two ways out
//
// A [Screen] folds: it keeps the last row as a terminal would show it, so that
// carriage return, backspace and the cursor movements within a row overwrite
// what is there. Of a progress bar that redraws itself a hundred times the last
// state remains. Rows that have ended are not touched again; movements to
// another row are removed.
//
// A [Filter] is for a terminal that folds by itself: it lets carriage return and
// backspace pass, and colours if they are wanted, and nothing else that could change
// the terminal.
//
// # The decoder
//
// Both read a byte stream through a decoder with these states; a stream has one
// decoder for its whole life:
//
//	ground ──ESC──▶ escape ──[──▶ csi ──final byte, CAN, SUB, anything else──▶ ground
//	   ▲               │ ├──0x20..0x2F──▶ intermediate ──0x30..0x7E──▶ ground
//	   │               │ └──]  P  X  ^  _──▶ string ──ST, CAN, SUB (OSC: BEL)──▶ ground
//	   └──other byte───┘                       └──ESC──▶ stringEscape ──\──▶ ground
//	                                                          └──other byte──▶ escape
//
// A newline ends whatever sequence it stands in, except in DCS, SOS, PM and
// APC, which may span lines (sixel images do). An OSC that a newline or the end
// of the stream cuts short does not count: its text is given back.
//
// Nothing in this package may be called from two goroutines at once.
package sanitise
