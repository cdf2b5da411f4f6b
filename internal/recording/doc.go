// Package recording records what a cell of a notebook shows while it runs, event
// by event: for those who run notebooks and for those who make them of sessions.
//
// # Guarantees
//
//   - Outputs come about by the rules of [notebook.Recorder].
//   - A cell leaves at most the bytes that its recording was begun with. What it
//     shows from the first output on that does not fit is counted and left out,
//     until it clears its outputs; the cell says how much is missing.
//   - Remarks that are not the cell's own stand at its end, on stderr, each as a
//     line "[coppice: …]".
//   - Times are those at which the events were recorded.
//
// # One cell
//
//	          ┌────────┐ Record, Flush
//	          ▼        │
//	Begin ──▶ recording ──Finish──▶ finished
//
// A recording edits its document, and belongs to whoever the document belongs to.
package recording
