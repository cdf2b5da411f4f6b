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
// Markdown is written by this package: headings, emphasis, code, lists, tables,
// quotations, links, pictures, rules. Formulas stay as they are written, between
// dollar signs. Code is coloured by chroma.
//
// Any goroutine may call [Write]; the document is for one at a time.
package page
