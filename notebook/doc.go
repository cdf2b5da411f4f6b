// Package notebook reads, shows, edits and writes Jupyter notebooks (.ipynb,
// nbformat 4; nbformat 3 is upgraded). It runs no code: it turns a file
// into text and edits into a file.
//
// # Guarantees
//
//   - Nothing is lost. A [Document] keeps the bytes it was read from. Written
//     without an edit they are the same; after an edit the rest of the file is
//     the same: unknown members, their order, numbers, escapes, indentation,
//     line ends, byte order mark, final newline.
//   - What the package adds is valid nbformat, laid out as the file is.
//   - The text view is exact. [Document.ApplyText] of [Document.Text] changes
//     nothing, whatever the sources hold.
//   - A failed edit changes nothing.
//   - Outputs are not decoded before they are asked for. Showing the first
//     lines of a large notebook costs one walk over its bytes and no copy.
//   - [File.Save] never overwrites what someone else wrote since the file was
//     read; it fails with [ErrChanged]. A reader of the file sees the old
//     notebook or the new one.
//   - Failures are an [*Error] whose kind errors.Is finds, except those of the
//     file system.
//
// Nothing here starts a goroutine. A document, and all that was taken from it,
// is for one goroutine at a time; documents are independent of each other.
//
// # The text view
//
// A notebook is shown as text with a marker line before each cell:
//
//	# %% [markdown] cell:0
//	# Prices
//	# %% [code] cell:1
//	import pandas as pd
//
// In edited text the marker says where a cell comes from. cell:1 is cell 1 of
// the notebook as it was shown: its id, metadata and outputs go along wherever
// the marker stands now, and whatever its type is. A marker without cell:N, or
// with one that was used above or does not exist, makes a new cell. A cell
// whose marker is gone is deleted. Text before the first marker is refused.
//
// A line of a source that looks like a marker is shown with one percent sign
// more ("# %%% [code]") and read back with one less.
//
//	        Parse                  Text
//	bytes ────────▶ Document ──────────────▶ text
//	  ▲                │ ▲                     │ a person, a model, an editor
//	  └────────────────┘ └─────────────────────┘
//	   Bytes, WriteTo          ApplyText
//
// # Stale outputs
//
// The outputs of a code cell were made by its source. When an edit changes the
// source, they are kept and the cell is marked ([Cell.Stale]); setting the
// source back, or new outputs, removes the mark. [StalePolicy] has the other
// ways.
//
// # Further
//
// [Document] has cell by cell edits (Insert, SetSource, SetType, Delete, Move,
// Split, Join, SetMetadata, SetTags, ReplaceAll), outputs ([Recorder],
// SetOutputs, Strip), parameters (SetParameters) and validation (Validate).
// [Diff] and [Merge] compare and merge notebooks by cells. Percent and Markdown
// export; [ParseText] reads the percent format too.
package notebook
