// Package page writes a notebook as one HTML page that needs nothing else: no
// network, no other file.
//
// # Guarantees
//
//   - Style sheet and pictures are in the page; it is light or dark as the
//     reader's system is, and can be printed.
//   - Nothing of the notebook runs. Text is escaped; pictures are data: URLs in
//     img elements; HTML that the notebook holds stands in frames whose sandbox
//     allows no script, form or navigation, and a content security policy lets
//     the page load nothing and run only its own few lines, which fit the frames
//     to what is in them.
//   - The same notebook and options give the same bytes.
//   - Memory is bounded by the largest cell and a constant, besides the notebook.
//
// Markdown is that of CommonMark, with the tables, struck text and task lists of
// GitHub; goldmark reads it, and what it would write as raw HTML, as a picture
// from elsewhere or as a link that runs something is written by this package.
// Formulas stay as they are written, between dollar signs. What would take long
// to read, or nests without end, is shown as it was written. Code is coloured by
// chroma. Text for a terminal is shown as sanitise and x/ansi read it, with its
// colours.
//
// Any goroutine may call [Write]; the document is for one at a time.
package page
