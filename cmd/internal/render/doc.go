// Package render turns events, results and trees into text for people.
//
// # Guarantees
//
//   - Functions are pure: no clock, no terminal, no file. What they need is in
//     their arguments, and the same arguments give the same text; but for the
//     order of the colours in a sixel picture, which makes no visible difference.
//   - Without colour a text holds no escape sequence at all. With colour it
//     holds SGR sequences only, and those of Style.Images where there is an
//     image; [Repaint] alone moves a cursor, and only the caller decides whether
//     it is used.
//   - Colours are those that the terminal's theme gives six names, never white,
//     black or a bright one: they can be read on dark and on light ground.
//   - What code in a kernel printed passes a filter that removes everything
//     that could change a terminal.
//   - Lines that this package makes are not wider than Style.Width. What a cell
//     printed is not broken or cut: that is the terminal's part.
//
// [Run] is the one type with a memory: it draws the events of one call, in
// order, and is for one goroutine at a time.
package render
