// Package budget keeps as much of a text as a reader should get: its head and
// its tail, with a marker for what is between.
//
// # Guarantees
//
//   - What is shown is within the budget of bytes and lines; the marker comes on
//     top. What fits whole is shown whole.
//   - The counts are exact: shown + elided = total, for bytes and for lines.
//   - No character is cut, neither a code point nor what people see as one: an
//     accented letter, a flag, a family of emoji (up to [MaxCluster] bytes; for
//     Columns, as far as one Write shows it).
//   - Where something is elided, the head ends with a whole line and the tail
//     begins with one, unless that would cost more than a quarter of the part:
//     then a piece of a line is shown.
//   - Time is linear in the text, whatever it is made of.
//   - Memory is bounded by the budget, however much is written.
//
// Lines are counted as wc -l counts them, plus one for text after the last
// newline.
//
// A piece of text can be put into a window as a [Slot], whose text can be
// replaced later where it stands: that is how a display that updates itself is
// shown once.
//
// Nothing in this package may be called from two goroutines at once.
package budget
