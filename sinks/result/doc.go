// Package result folds the events of one call into what a caller gets: the
// output half of a messages.Result ([Fold]), and the text that a model reads
// ([BuildText]).
//
// # Guarantees
//
//   - The text of a cell is its stdout, stderr, displays, tracebacks and notices
//     in the order in which they came, as plain text (package sanitise). A
//     display, a traceback and a notice begin on a line of their own.
//   - An update of a display replaces it where it stands, also in an earlier
//     cell of the call; one that is not in the text any more, or was shown by an
//     earlier call, is shown where the update came. Clearing a cell removes its
//     text, its images and its JSON.
//   - Memory is bounded, whatever is printed: the text by the budget of the
//     call (package budget), images, JSON and status events by [Options]. What
//     is left out is said in the text.
//   - When the text cannot hold everything, the raw output goes to an artifact,
//     byte for byte and from its beginning; at most one for a call. What was
//     cleared or updated away is in it too.
//
// # The budget of a call
//
// A call of one cell has the whole budget. In a call of several, a cell gets an
// equal share of what the cells before it left over, so that all of them
// together stay within the budget, give or take [MinShare] for each.
//
// # Displays
//
// A bundle with the brand's status type is a status event and nothing else. Of
// another, images and JSON are captured, and its text is the first of: text/markdown;
// the table of a data frame; text/plain; text/html, converted; text/latex, its
// source; the JSON, pretty and cut. A text/plain that only names the object
// (<IPython.core.display.HTML object>) comes last. Of a bundle without any of these
// the types are named.
//
// Images get their dimensions, and large ones are made smaller. Drawings (SVG,
// Vega, Plotly) are kept as artifacts of their own, and a line says what they
// are and where.
//
// Options.Tokens, and [LimitTokens] for any text, give a text that is too long another
// shape: its head, counted in tokens, and a reminder for the model. The sizes in it, as
// those in every text here, are of the whole output, counted while it came.
//
// A [Fold] may not be used by two goroutines at once; the functions may.
package result
