// Package messages is the vocabulary of Coppice: every message that crosses a
// mailbox, every event that a call emits, every result that a host receives.
//
// # Guarantees
//
//   - Standard library only, and no other package of this module.
//   - A message is a value. Its sender never changes it afterwards, and its receiver
//     must not change what it points to.
//   - [Event] and [Lifecycle] are sealed: the types in this package are all
//     there are, so that a switch over them can be complete.
//   - Every message has a JSON form, and a golden file in testdata holds it.
//     Fields may be added; a published field keeps its name and its meaning.
//
// # One call
//
// A host sends an [Execute] for a [SessionKey]. While it runs, [Event] values
// leave through the call's [Outlet], numbered from 1 without a gap. It ends
// with exactly one [Result]:
//
//	Execute ──▶ Status(running) ─▶ Stdout, Stderr, Display, … ─▶ Status(complete|error) ──▶ Result
//	             └────────────── once for each cell, in order ──────────────┘
//
// The life of one cell, as [CellStatus] names it:
//
//	pending ──▶ running ──▶ complete   the code ran to its end
//	   │            └─────▶ error      it raised, was stopped, or its kernel died
//	   └─▶ (stays pending)             an earlier cell of the call did not complete
package messages
