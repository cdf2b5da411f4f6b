// Package starve leaves tests little of the machine: it keeps the processors busy
// beside them ([Burn], [With]), takes a process its processor ([Deprive], on Linux), and
// counts how many verdicts of "hung" or "too late" were put off because of that ([Note],
// [Noted]).
//
// # Guarantees
//
//   - No burner outlives the program that started it, whatever becomes of that.
//   - A burner is a process of its own that does nothing else; it is this program, run
//     once more, which ends before any TestMain or main function begins.
//
// The suite below it (make test-starved) runs chosen tests in that way.
package starve
