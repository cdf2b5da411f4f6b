// Package hostcall serves what the code of a call asks of its host: functions that
// the host offers (tool.name(...)), primitives (runtime.<pack>.<name>(...)) and the
// answers to input().
//
// # Guarantees
//
//   - A question gets exactly one answer: a line, or that none came in time. Of several
//     lines the first counts, and whoever sends a later one gets an error.
//   - A function runs in a goroutine of its own. When its cell ends first, or its time
//     is up, its value and its further events are dropped; the cell waits for
//     neither. [Host.Wait] names those that have not returned.
//   - A panic of a function of the host is an error in the code, without its text,
//     and one line with the stack in the log.
//   - One call runs at most Options.MaxAtOnce functions at a time, and one cell makes
//     at most Options.MaxCalls calls.
//
// The life of a question:
//
//	waiting ──Submit, handler──▶ answered
//	   └──idle time, the cell ended──▶ expired
//
// Any goroutine may use a Host and its Calls.
package hostcall
