// Package htmltext turns the HTML of a display into Markdown for a reader that
// sees text only.
//
// # Guarantees
//
//   - Any input gives a text: what is not HTML, is cut or is wrongly nested is
//     read as well as it can be. Time and memory are linear in the input, of
//     which the first [MaxInput] bytes are read.
//   - The text is valid UTF-8 and holds no control character but newline and
//     tab.
//   - Nothing of scripts, styles, comments, templates and hidden elements is
//     shown, and no data: or javascript: address.
//
// Tags, attributes, entities and the contents of scripts are read by the tokenizer
// of golang.org/x/net/html. The tree is built here, not by the parser of HTML 5
// there: it nests no deeper than a hundred elements and moves none.
//
// # What becomes of what
//
// Paragraphs, line breaks, headings, lists, quotations, rules, code, tables
// (pipe tables; spans are filled up with empty cells), links, images,
// emphasis, entities. Other elements give their contents. Characters that
// Markdown gives a meaning are not escaped, except "|" in tables: the reader
// reads, and does not render.
package htmltext
