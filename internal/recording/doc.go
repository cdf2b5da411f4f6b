// Package recording records what a cell of a notebook shows while it runs, event
// by event, for packages that run notebooks and packages that make them from sessions.
//
// # Guarantees
//
//   - Outputs follow the rules of [notebook.Recorder].
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
// A recording edits its document, and may be used by whoever may edit that.
package recording
