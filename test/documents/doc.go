// Package documents knows every block of code that a user reads in README.md, docs and the
// READMEs of the clients, and how each is held to what the document says of it.
//
// # Guarantees
//
//   - A block is run, or it is in the table with the reason why it cannot be. One that is
//     in neither way there, or an entry that no block has, is an error of [Check]: a new
//     block has to be given its place.
//   - Blocks of Go are compiled and those of JSON parsed, all of them, by the tests of the
//     root package; they need no entry. docs/reference is made from the sources, and another
//     test holds it to them.
//   - The blocks of one document are one story: one shell goes through them in their order,
//     with a home of its own, as a reader does.
//
// The program in suite (make test-docs) runs the stories.
package documents
