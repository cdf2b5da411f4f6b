// Package judge reads what a run under faults has left behind and says what of it is
// untrue. It knows nothing of the host: it imports no package of ours, and reads two
// kinds of files that the run has written, independently of each other.
//
//   - calls.jsonl: what callers have asked and been told, a [Line] each.
//   - SESSION.cells: what cells of a session have done: "B CALL CELL INCARNATION VALUE"
//     when one begins, "E …" when it ends. An incarnation is the name that an
//     interpreter gave itself; the value counts the cells that have run in it.
//
// A cell writes B with the value that it is about to have, then it takes it. So after a
// B without an E the next value is the same, or one more.
package judge
